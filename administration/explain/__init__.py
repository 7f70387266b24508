"""Explains scheduling decisions: a host without work, a batch that waits, a due date."""
