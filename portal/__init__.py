"""Volunteers' part of the server, except work distribution: front page, attach flow, and their own pages."""
