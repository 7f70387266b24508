"""Simulations that somebody asked a server for: in the background, one at a time, followed in the database."""
