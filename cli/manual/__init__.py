"""Generates the pages of docs/reference that are derived from the code: `python -m cli.manual`."""
