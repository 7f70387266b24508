"""Limits that protect a worker: request rate, number of connections, body size."""
