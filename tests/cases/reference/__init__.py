"""Formulas of other systems, and definitions as plain loops, used only by tests."""
