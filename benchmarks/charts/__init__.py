"""How do the figures grow? Charts of what the other benchmarks printed."""
