"""Runs the production services in virtual time, with simulated volunteers and submitters."""
