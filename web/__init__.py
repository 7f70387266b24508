"""Shared parts of the console, the API and the volunteers' pages."""
