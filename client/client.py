"""The client, whole."""

from __future__ import annotations

from client.ordering import Ordering
from client.settings import Administration
from client.work import Work


class Client(Work, Ordering, Administration):
    """One project's API. Raises ApiError for every refusal, UnreachableError without an answer."""
