"""What the ordering remembers, and the rules it goes by, in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import LeafId, LeafStanding, LeafUsage, OrderNotes, Reference, StoredGrant, WindowUsage
from domain.units import AccountId, BatchId, Instant, Seconds

WindowKey = tuple[LeafId, str, Instant, Seconds]
LimitKey = tuple[str, str, str]  # scope, quantity, name; empty: everybody's


class OrderBook:
    """The tables of the order of batches."""

    def __init__(self) -> None:
        self.serial = 0
        self.reference: Reference | None = None
        self.notes: dict[BatchId, OrderNotes] = {}
        self.breakdowns: dict[BatchId, Mapping[str, object]] = {}
        self.usage: dict[LeafId, LeafUsage] = {}
        self.standings: dict[LeafId, LeafStanding] = {}
        self.windows: dict[WindowKey, WindowUsage] = {}
        self.grants: dict[AccountId, StoredGrant] = {}
        self.limits: dict[LimitKey, Limit] = {}


def limit_key(scope: Scope, quantity: Quantity, name: str | None) -> LimitKey:
    """The key of a limit, in the order they are listed.

    >>> limit_key(Scope.APP, Quantity.JOB_PE, None)
    ('app', 'job_pe', '')
    """
    return str(scope), quantity.name.lower(), name or ""
