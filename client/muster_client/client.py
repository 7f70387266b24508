"""The client for programs that use asyncio."""

from __future__ import annotations

from muster_client.ordering import Ordering
from muster_client.settings import Administration
from muster_client.work import Work


class Client(Work, Ordering, Administration):
    """One project's API. Raises ApiError for every refusal, UnreachableError without an answer.

    It belongs to the event loop of its first call, until it is closed.
    """
