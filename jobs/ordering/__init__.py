"""The periodic task that orders batches."""
