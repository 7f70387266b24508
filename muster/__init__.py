"""The typed client of a Muster server's API."""

from operations.client import ApiError, Client, SyncClient, UnreachableError

__all__ = ["ApiError", "Client", "SyncClient", "UnreachableError"]
