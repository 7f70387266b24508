"""Worked figures of other systems, put to Muster's own functions: `python -m tests.cases PATH…`.

A case is a JSON file with `id`, `kind`, `inputs`, `expected` and `tolerance`. Nothing is calculated here that the
product does not calculate: a kind reads a case's inputs into the product's values and hands back its answers.
"""
