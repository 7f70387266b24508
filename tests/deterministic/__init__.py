"""Runs the whole service on virtual time, with task order and failures drawn from a seed."""
