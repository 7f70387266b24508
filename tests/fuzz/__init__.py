"""Fuzzing with millions of hostile inputs: `make fuzz`."""
