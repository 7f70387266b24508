"""Measures the gain of each way of cheating: hostile clients against the real services, in virtual time."""
