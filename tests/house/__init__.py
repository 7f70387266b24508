"""Measures the shape of the code: `python -m tests.house [--json]`."""
