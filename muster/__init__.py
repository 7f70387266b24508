"""The typed client of a Muster server's API, and the shapes of what it returns."""

from api import shapes
from client import ApiError, Client, ExplainedKind, SyncClient, UnreachableError

__all__ = ["ApiError", "Client", "ExplainedKind", "SyncClient", "UnreachableError", "shapes"]
