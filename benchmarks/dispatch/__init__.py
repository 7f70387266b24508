"""Measures how many durable dispatches per second a node serves, compared with the same server without work."""
