"""A typed client of the JSON API, for users' own scripts; the package `muster` re-exports it.

async with muster.Client("http://127.0.0.1:8080/", token) as client:
    batch_id = await client.submit({"app": "double", "qos": "afap", "jobs": {...}})
    print(await client.wait(batch_id))

with muster.SyncClient("http://127.0.0.1:8080/", token) as client:
    print(client.batches(limit=5))
"""

from client.blocking import SyncClient
from client.client import Client
from client.transport import ApiError, UnreachableError
from client.work import ExplainedKind, LookedFor

__all__ = ["ApiError", "Client", "ExplainedKind", "LookedFor", "SyncClient", "UnreachableError"]
