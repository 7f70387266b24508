"""Benchmarks of the parts that must stay fast; each prints one JSON object with --json."""
