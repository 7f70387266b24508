"""Measures what hostile clients gain by each cheating method, with the real services in virtual time."""
