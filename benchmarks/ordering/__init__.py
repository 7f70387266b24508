"""Measures the cost of ordering all batches."""
