"""Implements the `muster` command."""
