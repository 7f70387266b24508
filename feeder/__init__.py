"""Keeps the in-memory job array filled in order."""
