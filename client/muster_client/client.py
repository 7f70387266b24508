"""The asyncio client."""

from __future__ import annotations

from muster_client.ordering import Ordering
from muster_client.settings import Administration
from muster_client.work import Work


class Client(Work, Ordering, Administration):
    """A client of one project's API. Raises ApiError if the server refuses, UnreachableError if it does not reply.

    Until closed, it is bound to the event loop of its first call.
    """
