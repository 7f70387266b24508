"""What ordering all batches costs."""
