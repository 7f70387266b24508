"""The typed client of a Muster server's API."""

from operations.client import ApiError, Client

__all__ = ["ApiError", "Client"]
