"""The demonstration. It runs a whole project from installation to finished batches in under two minutes."""
