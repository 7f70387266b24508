"""Measures how many results per second background processes validate, one and several at once."""
