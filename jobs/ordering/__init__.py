"""Orders batches: a periodic task."""
