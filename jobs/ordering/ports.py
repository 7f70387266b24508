"""What the ordering of batches needs from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.ordered_work import OrderingCharges, OrderingView, Reference, StoredPlace
from domain.units import BatchId, Instant


class OrderedWork(Protocol):
    async def view(self) -> OrderingView:
        """Everything an ordering goes by."""
        ...

    async def reference(self, *, active_since: Instant, now: Instant) -> Reference:
        """What hosts are like that called since then; looks at all of them."""
        ...

    async def used_fractions(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[float]]:
        """What some valid results of each batch took of their estimates, newest first; no entry without any."""
        ...

    async def charge(self, charges: OrderingCharges) -> int | None:
        """Write all of it in one transaction; the new serial, or None when another ordering came first."""
        ...

    async def move(self, places: Sequence[StoredPlace]) -> int:
        """Move batches that are active still, some at a time; how many. One that somebody is changing stays."""
        ...

    async def explain(self, records: Mapping[BatchId, Mapping[str, object]], *, now: Instant) -> None:
        """Keep these breakdowns, some at a time."""
        ...
