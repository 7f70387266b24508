"""Measures how many results per second one or several background processes validate."""
