"""Charts of the other benchmarks' results."""
