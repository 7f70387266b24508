"""Benchmarks for the parts that must stay fast. With --json, each prints one JSON object."""
