"""What does a transaction change in the counters of batches? Gathered in memory, written once, in key order.

A batch that has nothing unsent and gets something is marked as waiting by a trigger, and one whose jobs end may end
itself: both change the batch's row. So those rows are locked before the first counter, in key order, by everybody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

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

    def rising(self) -> set[BatchId]:
        """The batches that get more unsent instances than they lose.

        >>> counts = CountChanges()
        >>> counts.add(BatchId(1), BatchCounts(unsent=1), 2)
        >>> counts.add(BatchId(1), BatchCounts(unsent=-1, sent=1))
        >>> counts.add(BatchId(2), BatchCounts(unsent=-1, sent=1))
        >>> counts.rising()
        {1}
        """
        return {batch_id for batch_id in self._changes if self._sum(batch_id, "unsent") > 0}

    async def write(self, connection: Connection, *, ended: Collection[BatchId] = ()) -> None:
        """Add everything gathered to the counters. `ended`: batches whose rows the caller changes afterwards."""
        locked = self.rising().union(ended)
        if locked:
            await connection.execute(load("lock_batches"), sorted(locked))
        batch_ids = sorted(self._changes)
        if batch_ids:
            columns = zip(*map(self._line, batch_ids), strict=True)
            await connection.execute(load("add_counts"), *map(list, columns))

    def _line(self, batch_id: BatchId) -> tuple[object, ...]:
        """One entry for each array argument of sql/settling.sql (add_counts)."""
        sums = (self._sum(batch_id, field) for field in FIELDS)
        return (batch_id, *sums, self._first_dispatch_at.get(batch_id))

    def _sum(self, batch_id: BatchId, field: str) -> int:
        return sum(getattr(change, field) * times for change, times in self._changes[batch_id].items())
