"""Positions up to which the fresh instances of each (batch, shard) have been read."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice

from domain.jobs import Ready
from domain.units import SHARDS, BatchId, InstanceId, Seconds, shard_of

PROBE_S = Seconds(5.0)  # a range that was read to its end is not looked at again for this long


@dataclass(slots=True)
class _Positions:
    """One batch: per shard the last instance read; and which shards were read to their end, till when that holds."""

    after: array[int] = field(default_factory=lambda: array("q", bytes(8 * SHARDS)))
    closed: dict[int, Seconds] = field(default_factory=dict)
    _in_order: list[int] | None = None

    def in_order(self) -> list[int]:
        """All shards: least advanced first, once read to the end last. Made anew after a change."""
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
    """Keyset cursors. All times are of the monotonic clock.

    A cursor has passed an instance only if somebody remembers it: the array, the instances in flight, or a
    group's cool-off. Whoever lets go of an unsent instance calls `rewind`. A range that was read to its end
    starts over after PROBE_S, so that an instance whose transaction committed late is found too.
    Memory: about 1.5 KiB per batch that was read.
    """

    def __init__(self) -> None:
        self._batches: dict[BatchId, _Positions] = {}
        self._dry: dict[BatchId, Seconds] = {}
        self._owned: frozenset[int] = frozenset()

    def after(self, batch_id: BatchId, shard: int) -> InstanceId:
        """The instance behind which to read on; 0 is the start."""
        positions = self._batches.get(batch_id)
        return InstanceId(positions.after[shard] if positions is not None else 0)

    def open_shards(
        self, batch_id: BatchId, shards: Collection[int], *, now_s: Seconds, most: int = SHARDS
    ) -> list[int]:
        """The first of `shards` that may have more to read: least advanced first, once read to the end last."""
        positions = self._batches.get(batch_id)
        if positions is None:
            return sorted(shards)[:most]
        every, closed = positions.in_order(), positions.closed
        still_open = (shard for shard in every if shard in shards and closed.get(shard, now_s) <= now_s)
        return list(islice(still_open, most))

    def is_probed(self, batch_id: BatchId, shard: int) -> bool:
        """Whether the range was read to its end before: if it is open, it is to be looked at once more."""
        positions = self._batches.get(batch_id)
        return positions is not None and shard in positions.closed

    def is_open(self, batch_id: BatchId, shards: Collection[int], *, now_s: Seconds) -> bool:
        """Whether any of `shards` may have more to read."""
        positions = self._batches.get(batch_id)
        if positions is None or len(positions.closed) < len(shards):
            return bool(shards)
        return any(positions.closed.get(shard, now_s) <= now_s for shard in shards)

    def advance(self, ready: Ready) -> None:
        """The instance was read and somebody remembers it."""
        positions = self._batches.setdefault(ready.batch_id, _Positions())
        shard = shard_of(ready.job_id)
        if ready.instance_id > positions.after[shard]:
            positions.read_until(shard, ready.instance_id)

    def found_end(self, batch_id: BatchId, shard: int, *, now_s: Seconds) -> None:
        """Nothing is left behind the cursor now."""
        positions = self._batches.setdefault(batch_id, _Positions())
        positions.read_until(shard, 0)
        positions.close(shard, Seconds(now_s + PROBE_S))

    def found_dry(self, batch_id: BatchId, *, now_s: Seconds) -> None:
        """All fresh instances of a batch were read and are remembered."""
        self._dry[batch_id] = Seconds(now_s + PROBE_S)

    def is_dry(self, batch_id: BatchId, *, now_s: Seconds) -> bool:
        """Whether the whole remainder of a batch was read less than PROBE_S ago."""
        return self._dry.get(batch_id, now_s) > now_s

    def is_not_dry(self, batch_id: BatchId) -> None:
        """There is something that was not read with the remainder: read it again."""
        self._dry.pop(batch_id, None)

    def rewind(self, ready: Ready) -> None:
        """An unsent instance was let go of: read on before it."""
        self.rewind_batch(ready.batch_id, {shard_of(ready.job_id): ready.instance_id})

    def rewind_batch(self, batch_id: BatchId, smallest: Mapping[int, InstanceId]) -> None:
        """Read on before the smallest instance let go of in each shard."""
        self._dry.pop(batch_id, None)
        positions = self._batches.get(batch_id)
        if positions is None:
            return
        for shard, instance_id in smallest.items():
            positions.read_until(shard, min(positions.after[shard], instance_id - 1))
            positions.open(shard)

    def own(self, owned: frozenset[int]) -> None:
        """Start over in every shard that was gained or lost."""
        changed = owned ^ self._owned
        self._owned = owned
        if changed:
            self._dry.clear()
        for positions in self._batches.values() if changed else ():
            for shard in changed:
                positions.read_until(shard, 0)
                positions.open(shard)

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget the cursors of other batches: they have no work any more."""
        for batch_id in {*self._batches, *self._dry}.difference(batch_ids):
            self._batches.pop(batch_id, None)
            self._dry.pop(batch_id, None)
