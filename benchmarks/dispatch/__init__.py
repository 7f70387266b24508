"""Measures how many durable dispatches per second a node answers, against the same server without work."""
