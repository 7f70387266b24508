"""The client, whole."""

from __future__ import annotations

from operations.client.ordering import Ordering
from operations.client.settings import Administration
from operations.client.work import Work


class Client(Work, Ordering, Administration):
    """One project's API. Raises ApiError for every refusal, UnreachableError without an answer."""
