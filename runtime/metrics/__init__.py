"""A node's metrics and health pages, for monitoring systems and load balancers."""
