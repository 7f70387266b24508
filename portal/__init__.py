"""The volunteers' part of the server, except work distribution: front page, attach flow, and account pages."""
