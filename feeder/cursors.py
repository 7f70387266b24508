"""Keyset cursors: for each (batch, shard), the last instance that has been read."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice

from domain.jobs import Ready
from domain.units import SHARDS, BatchId, InstanceId, Seconds, shard_of

PROBE_S = Seconds(5.0)  # a fully read range is not read again for this long


@dataclass(slots=True)
class _Positions:
    """A batch's cursors: per shard, the last instance read and, if the shard was fully read, when it reopens."""

    after: array[int] = field(default_factory=lambda: array("q", bytes(8 * SHARDS)))
    closed: dict[int, Seconds] = field(default_factory=dict)
    _in_order: list[int] | None = None

    def in_order(self) -> list[int]:
        """Return all shards, least advanced first, fully read ones last. Cached until a change."""
        if self._in_order is None:
            closed, after = self.closed, self.after
            self._in_order = sorted(range(SHARDS), key=lambda shard: (closed.get(shard, 0.0), after[shard], shard))
        return self._in_order

    def read_until(self, shard: int, instance_id: int) -> None:
        self.after[shard] = instance_id
        self._in_order = None

    def close(self, shard: int, until_s: Seconds) -> None:
        self.closed[shard] = until_s
        self._in_order = None

    def open(self, shard: int) -> None:
        self.closed.pop(shard, None)
        self._in_order = None


class Cursors:
    """Keyset cursors for all batches. All times are monotonic.

    A cursor may pass an instance only if the instance is remembered: as a slot, in flight, or in a group in back-off. A
    caller that drops an unsent instance must call `rewind`. After PROBE_S, a fully read range is read from the start,
    to find instances whose transaction committed late. Memory: about 1.5 KiB per batch that was read.
    """

    def __init__(self) -> None:
        self._batches: dict[BatchId, _Positions] = {}
        self._dry: dict[BatchId, Seconds] = {}
        self._owned: frozenset[int] = frozenset()

    def after(self, batch_id: BatchId, shard: int) -> InstanceId:
        """Return the instance after which reading continues; 0 means the start."""
        positions = self._batches.get(batch_id)
        return InstanceId(positions.after[shard] if positions is not None else 0)

    def open_shards(
        self, batch_id: BatchId, shards: Collection[int], *, now_s: Seconds, most: int = SHARDS
    ) -> list[int]:
        """Return up to `most` of `shards` that may have more to read, least advanced first, fully read ones last."""
        positions = self._batches.get(batch_id)
        if positions is None:
            return sorted(shards)[:most]
        every, closed = positions.in_order(), positions.closed
        still_open = (shard for shard in every if shard in shards and closed.get(shard, now_s) <= now_s)
        return list(islice(still_open, most))

    def is_probed(self, batch_id: BatchId, shard: int) -> bool:
        """Return whether the open range had been fully read before, so that reading it now is a probe."""
        positions = self._batches.get(batch_id)
        return positions is not None and shard in positions.closed

    def is_open(self, batch_id: BatchId, shards: Collection[int], *, now_s: Seconds) -> bool:
        """Return whether any of `shards` may have more to read."""
        positions = self._batches.get(batch_id)
        if positions is None or len(positions.closed) < len(shards):
            return bool(shards)
        return any(positions.closed.get(shard, now_s) <= now_s for shard in shards)

    def advance(self, ready: Ready) -> None:
        """Move the cursor past an instance that was read and is now remembered."""
        positions = self._batches.setdefault(ready.batch_id, _Positions())
        shard = shard_of(ready.job_id)
        if ready.instance_id > positions.after[shard]:
            positions.read_until(shard, ready.instance_id)

    def found_end(self, batch_id: BatchId, shard: int, *, now_s: Seconds) -> None:
        """Close a shard that has no unsent instances left after its cursor."""
        positions = self._batches.setdefault(batch_id, _Positions())
        positions.read_until(shard, 0)
        positions.close(shard, Seconds(now_s + PROBE_S))

    def found_dry(self, batch_id: BatchId, *, now_s: Seconds) -> None:
        """Record that all fresh instances of a batch were read and are remembered."""
        self._dry[batch_id] = Seconds(now_s + PROBE_S)

    def is_dry(self, batch_id: BatchId, *, now_s: Seconds) -> bool:
        """Return whether a batch's whole tail was read less than PROBE_S ago."""
        return self._dry.get(batch_id, now_s) > now_s

    def is_not_dry(self, batch_id: BatchId) -> None:
        """Allow reading the tail again, because the database has rows that the last reading did not return."""
        self._dry.pop(batch_id, None)

    def rewind(self, ready: Ready) -> None:
        """Move the cursor back to before an unsent instance that was dropped from the array."""
        self.rewind_batch(ready.batch_id, {shard_of(ready.job_id): ready.instance_id})

    def rewind_batch(self, batch_id: BatchId, smallest: Mapping[int, InstanceId]) -> None:
        """Move the cursors back so that each shard's smallest dropped instance is read again."""
        self._dry.pop(batch_id, None)
        positions = self._batches.get(batch_id)
        if positions is None:
            return
        for shard, instance_id in smallest.items():
            positions.read_until(shard, min(positions.after[shard], instance_id - 1))
            positions.open(shard)

    def own(self, owned: frozenset[int]) -> None:
        """Restart reading of all shards that were gained or lost."""
        changed = owned ^ self._owned
        self._owned = owned
        if changed:
            self._dry.clear()
        for positions in self._batches.values() if changed else ():
            for shard in changed:
                positions.read_until(shard, 0)
                positions.open(shard)

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget the cursors of batches not in `batch_ids`, which have no more work."""
        for batch_id in {*self._batches, *self._dry}.difference(batch_ids):
            self._batches.pop(batch_id, None)
            self._dry.pop(batch_id, None)
