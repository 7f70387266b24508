"""Checks that nothing is lost, doubled or late when nodes of one database are killed and others join."""
