"""What a monitoring system and a load balancer ask of a node."""
