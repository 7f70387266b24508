"""Typed client for the JSON API of a Muster server, for scripts and notebooks.

>>> from muster_client import SyncClient
>>> client = SyncClient("http://127.0.0.1:8080/", "a token")  # the first call connects
>>> client.close()
"""

from muster_client import shapes
from muster_client.blocking import SyncClient
from muster_client.client import Client
from muster_client.transport import ApiError, ChangedError, MusterClientError, UnreachableError
from muster_client.work import ExplainedKind, HostListKind

__all__ = [
    "ApiError",
    "ChangedError",
    "Client",
    "ExplainedKind",
    "HostListKind",
    "MusterClientError",
    "SyncClient",
    "UnreachableError",
    "shapes",
]
