"""Draws charts of the other benchmarks' results."""
