"""Generates the pages of docs/reference that are made from the code: `python -m cli.manual`."""
