"""The life cycles of instances and jobs. Pure."""
