"""The life cycle of instances and jobs. Pure."""
