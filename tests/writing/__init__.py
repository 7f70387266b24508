"""Checks of the project's language: plain words, short test names, commit titles. `python -m tests.writing --help`."""
