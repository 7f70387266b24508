"""The volunteers' part of the server without work distribution: front page, attach flow, and account pages."""
