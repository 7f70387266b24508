"""Limits that protect a worker: rate of requests, number of connections, size of bodies."""
