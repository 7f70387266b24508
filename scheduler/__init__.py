"""Answers a host: which jobs it gets, and by when they must be back."""
