"""Orders batches. Periodic task."""
