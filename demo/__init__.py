"""The demonstration: a whole project from nothing to finished batches, in under two minutes."""
