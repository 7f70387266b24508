"""Runs a node under steady load for a long time."""
