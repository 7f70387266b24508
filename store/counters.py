"""What does a transaction change in the counters of batches? Gathered in memory, written once, in key order."""

from __future__ import annotations

from domain.batches import BatchCounts
from domain.units import BatchId, Instant
from store.counting import added
from store.pool import Connection
from store.queries import load


class CountChanges:
    """Changes by (batch, shard). One per transaction."""

    def __init__(self) -> None:
        self._counts: dict[tuple[BatchId, int], BatchCounts] = {}
        self._first_dispatch_at: dict[tuple[BatchId, int], Instant] = {}

    def add(self, batch_id: BatchId, shard: int, change: BatchCounts) -> None:
        key = (batch_id, shard)
        self._counts[key] = added(self._counts.get(key, BatchCounts()), change)

    def note_first_dispatch(self, batch_id: BatchId, shard: int, sent_at: Instant) -> None:
        """A job's first instance was sent; comes with an `add` for the same key."""
        key = (batch_id, shard)
        self._first_dispatch_at[key] = max(self._first_dispatch_at.get(key, sent_at), sent_at)

    async def write(self, connection: Connection) -> None:
        """Add everything gathered to the counters."""
        keys = sorted(self._counts)
        if not keys:
            return
        changes = [self._counts[key] for key in keys]
        await connection.execute(
            load("add_counts"),
            [batch_id for batch_id, _ in keys],
            [shard for _, shard in keys],
            [change.jobs_validated for change in changes],
            [change.jobs_failed for change in changes],
            [change.unsent for change in changes],
            [change.in_progress for change in changes],
            [change.retries for change in changes],
            [change.sent for change in changes],
            [change.reported for change in changes],
            [change.deadlines_missed for change in changes],
            [self._first_dispatch_at.get(key) for key in keys],
        )
