"""Measures every page of the console and of volunteers, and every API route, on a large project."""
