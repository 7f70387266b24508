"""Formulas of other systems and definitions in plain loops, which only tests compute."""
