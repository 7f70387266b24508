"""Decides the order of batches. Pure."""
