"""Metrics and health pages of a node, for monitoring systems and load balancers."""
