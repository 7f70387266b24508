"""Evicts slots before a refill: ended batches, lost shards, and stale or unschedulable slots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from domain.clock import Clock
from domain.units import BatchId, InstanceId, Seconds
from feeder.array import JobArray
from feeder.cursors import Cursors
from feeder.groups import Group
from feeder.ports import WaitingWork
from feeder.reading import Classes, Snapshot
from feeder.revalidation import Sweep

CHECK_OWN_S = Seconds(60.0)  # period in which all slots that only this worker has are checked
CHECK_SHARED_S = Seconds(5.0)  # the same for slots that all workers have, because other workers send them too
MOST_CHECKED = 1000  # maximum number of instances in flight, and of slots of each kind, checked per refill


@dataclass(frozen=True, slots=True)
class Left:
    """The number of evicted slots: `dropped` in total, of which `rotated_out` were unschedulable."""

    dropped: int
    rotated_out: int


class Eviction:
    """Removes slots that are no longer valid. Instances that may still be unsent are read again later."""

    def __init__(self, waiting: WaitingWork, array: JobArray, cursors: Cursors, classes: Classes, clock: Clock) -> None:
        self._waiting = waiting
        self._array = array
        self._cursors = cursors
        self._classes = classes
        self._clock = clock
        self._own = Sweep(CHECK_OWN_S)
        self._shared = Sweep(CHECK_SHARED_S)

    async def do(self, view: Snapshot, held_before: Collection[BatchId]) -> Left:
        """Run all evictions. `held_before` are the batches that were in the array before the snapshot was read."""
        ended = self._forget_ended(view, held_before)
        foreign = self._drop_foreign(view)
        stale = await self._drop_stale(view)
        rotated = self._rotate(view.kept)
        return Left(ended + foreign + stale + rotated, rotated)

    def _forget_ended(self, view: Snapshot, held_before: Collection[BatchId]) -> int:
        """Forget batches without unsent instances, and return the number of slots dropped."""
        gone = {batch_id for batch_id in held_before if batch_id not in view.by_id} if view.whole else set()
        ended = [group.key for group in self._array.each_group() if group.batch.batch_id in gone] if gone else []
        slots = sum(len(self._array.drop_group(key)) for key in ended)
        self._array.refresh(view.by_id, view.places)
        self._array.rotation.keep_batches(view.by_id.keys())
        self._cursors.keep_batches(view.by_id.keys())
        self._classes.keep_batches(view.by_id.keys() | self._array.batches())
        return slots

    def _drop_foreign(self, view: Snapshot) -> int:
        """Drop slots of shards that this worker does not own, except slots that all workers have."""
        self._cursors.own(view.owned)
        self._array.own(view.owned)
        foreign = [
            ready
            for group in self._array.each_group()
            if (group.foreign or not view.owned) and not _is_shared(group, view)
            for ready in group
            if not view.is_ours(ready)
        ]
        for ready in foreign:
            self._array.drop(ready.instance_id)
            self._cursors.rewind(ready)
        return len(foreign)

    async def _drop_stale(self, view: Snapshot) -> int:
        """Revalidate a share of the slots, and instances that have been in flight for too long."""
        now_s = self._clock.monotonic()
        groups = self._array.each_group()
        shared = (ready.instance_id for group in groups if _is_shared(group, view) for ready in group)
        own = (ready.instance_id for group in groups if not _is_shared(group, view) for ready in group)
        slots = self._shared.due(shared, now_s=now_s, limit=MOST_CHECKED)
        slots += self._own.due(own, now_s=now_s, limit=MOST_CHECKED)
        slots = [instance_id for instance_id in slots if instance_id in self._array]
        taken = self._array.in_flight.due(now_s, MOST_CHECKED)
        asked = slots + [one.ready.instance_id for one in taken]
        unsent = set(await self._waiting.still_unsent(asked)) if asked else set[InstanceId]()
        for one in taken:
            if one.ready.instance_id in unsent:
                self._cursors.rewind(one.ready)
        self._array.forget([one.ready.instance_id for one in taken], now_s)
        stale = [instance_id for instance_id in slots if instance_id not in unsent]
        return sum(self._array.drop(instance_id) is not None for instance_id in stale)

    def _rotate(self, kept: Collection[BatchId]) -> int:
        """End expired back-offs; drop groups that all recent hosts refused, except in batches with reserved slots."""
        now_s = self._clock.monotonic()
        self._array.rotation.recall(kept)
        for batch_id, smallest in self._array.rotation.returning(now_s=now_s):
            self._cursors.rewind_batch(batch_id, smallest)
        rotated = 0
        for key in self._array.rotation.full_rows():
            if key[0] in kept:
                continue
            slots = self._array.drop_group(key)
            self._array.rotation.rotate_out(key, slots, now_s=now_s)
            rotated += len(slots)
        return rotated


def _is_shared(group: Group, view: Snapshot) -> bool:
    """Return whether all workers have the group's slots."""
    return group.urgent or view.everywhere(group.batch.batch_id)
