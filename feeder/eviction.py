"""Evicts what must leave the array before a refill: ended batches, lost shards, stale and unschedulable slots."""

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

CHECK_OWN_S = Seconds(60.0)  # a round of checks of slots only this worker holds
CHECK_SHARED_S = Seconds(5.0)  # of slots every worker holds: others send them too
MOST_CHECKED = 1000  # instances in flight, and slots of each kind, per refill


@dataclass(frozen=True, slots=True)
class Left:
    """Slots that left: `dropped` in all, `rotated_out` of them because nobody could run them."""

    dropped: int
    rotated_out: int


class Eviction:
    """Keeps the array true. Whatever leaves and may be unsent is read again later."""

    def __init__(self, waiting: WaitingWork, array: JobArray, cursors: Cursors, classes: Classes, clock: Clock) -> None:
        self._waiting = waiting
        self._array = array
        self._cursors = cursors
        self._classes = classes
        self._clock = clock
        self._own = Sweep(CHECK_OWN_S)
        self._shared = Sweep(CHECK_SHARED_S)

    async def do(self, view: Snapshot, held_before: Collection[BatchId]) -> Left:
        """Everything in turn. `held_before` are the batches in the array before the view was read."""
        ended = self._forget_ended(view, held_before)
        foreign = self._drop_foreign(view)
        stale = await self._drop_stale(view)
        rotated = self._rotate(view.kept)
        return Left(ended + foreign + stale + rotated, rotated)

    def _forget_ended(self, view: Snapshot, held_before: Collection[BatchId]) -> int:
        """Batches without unsent instances vanish, with all that is known of them."""
        gone = {batch_id for batch_id in held_before if batch_id not in view.by_id} if view.whole else set()
        ended = [group.key for group in self._array.each_group() if group.batch.batch_id in gone] if gone else []
        slots = sum(len(self._array.drop_group(key)) for key in ended)
        self._array.refresh(view.by_id)
        self._array.rotation.keep_batches(view.by_id.keys())
        self._cursors.keep_batches(view.by_id.keys())
        self._classes.keep_batches(view.by_id.keys() | self._array.batches())
        return slots

    def _drop_foreign(self, view: Snapshot) -> int:
        """Slots of shards this worker does not own leave, except for those every worker holds."""
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
        """Ask the database about some slots, and about instances whose dispatch should long be written."""
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
        """Cool-offs end, and groups everybody refused leave, but for those that slots are kept for."""
        now_s = self._clock.monotonic()
        self._array.rotation.recall(kept)
        for returning in self._array.rotation.returning(now_s=now_s):
            self._cursors.rewind_batch(returning.batch_id, returning.smallest)
        rotated = 0
        for key in self._array.rotation.full_rows():
            if key[0] in kept:
                continue
            slots = self._array.drop_group(key)
            self._array.rotation.rotate_out(key, slots, now_s=now_s)
            rotated += len(slots)
        return rotated


def _is_shared(group: Group, view: Snapshot) -> bool:
    """Whether every worker holds the group's slots."""
    return group.urgent or view.everywhere(group.batch.batch_id)
