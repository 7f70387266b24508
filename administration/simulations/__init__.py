"""Simulations requested from a server: run in the background, one at a time, with progress in the database."""
