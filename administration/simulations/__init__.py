"""Simulations requested through a server. They run in the background, one at a time, with progress in the database."""
