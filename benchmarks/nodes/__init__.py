"""Checks that no job is lost, duplicated or late when nodes sharing a database are killed and new nodes join."""
