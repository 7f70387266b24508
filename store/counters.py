"""What does a transaction change in the counters of batches? Gathered in memory, written once, in key order."""

from __future__ import annotations

from collections import defaultdict

from domain.batches import BatchCounts
from domain.units import BatchId, Instant
from store.pool import Connection
from store.queries import load

FIELDS = (
    "jobs_validated",
    "jobs_failed",
    "unsent",
    "in_progress",
    "retries",
    "sent",
    "reported",
    "deadlines_missed",
)


class CountChanges:
    """Changes by batch. One per transaction."""

    def __init__(self) -> None:
        self._changes: dict[BatchId, dict[BatchCounts, int]] = defaultdict(dict)
        self._first_dispatch_at: dict[BatchId, Instant] = {}

    def add(self, batch_id: BatchId, change: BatchCounts, times: int = 1) -> None:
        changes = self._changes[batch_id]
        changes[change] = changes.get(change, 0) + times

    def note_first_dispatch(self, batch_id: BatchId, sent_at: Instant) -> None:
        """A job's first instance was sent; comes with an `add` for the same batch."""
        self._first_dispatch_at[batch_id] = max(self._first_dispatch_at.get(batch_id, sent_at), sent_at)

    async def write(self, connection: Connection) -> None:
        """Add everything gathered to the counters."""
        batch_ids = sorted(self._changes)
        if batch_ids:
            columns = zip(*map(self._line, batch_ids), strict=True)
            await connection.execute(load("add_counts"), *map(list, columns))

    def _line(self, batch_id: BatchId) -> tuple[object, ...]:
        """One entry for each array argument of sql/add_counts.sql."""
        changes = self._changes[batch_id].items()
        sums = (sum(getattr(change, field) * times for change, times in changes) for field in FIELDS)
        return (batch_id, *sums, self._first_dispatch_at.get(batch_id))
