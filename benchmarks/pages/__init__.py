"""Measures every console page, volunteer page and API route on a large project."""
