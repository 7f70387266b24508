"""Hostile input, made by the million: `make fuzz`."""
