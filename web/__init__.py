"""Common parts of the console, the API and the volunteer pages."""
