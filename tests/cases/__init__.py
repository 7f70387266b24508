"""Worked figures of other systems, put to Muster's functions and to those in reference/: `python -m tests.cases PATH…`.

A case is a JSON file with `id`, `kind`, `inputs`, `expected` and `tolerance`. A kind reads a case's inputs into the
values of these functions and returns their answers.
"""
