"""Volunteers' part of the server besides work: the front page, the attach flow, and their own pages."""
