"""Compares worked figures of other systems with Muster's functions and those in reference/: `python -m tests.cases
PATH…`.

A case is a JSON file with `id`, `kind`, `inputs`, `expected` and `tolerance`. A kind converts a case's inputs for these
functions and returns their answers.
"""
