"""Which slots are alike for every decision, and in which order they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from domain.batches import Batch
from domain.jobs import JobClass, Ready
from domain.units import SHARDS, BatchId, JobClassId
from feeder.sorted_slots import SlotRank, SortedSlots

GroupKey = tuple[BatchId, JobClassId, bool]  # batch, class, urgent
GroupRank = tuple[int, float, SlotRank]
Turns = tuple[int, ...]  # per shard, when it has its turn among slots of equal rank

ONE_TURN: Turns = (0,) * SHARDS  # all shards alike


def group_key(ready: Ready) -> GroupKey:
    """The group an instance belongs to."""
    return ready.batch_id, ready.job_class_id, ready.urgent


def turns_of(owned: Collection[int]) -> Turns:
    """The shards' turns in a worker: its own first, then the others, beginning behind its first own.

    Every worker holds gated jobs and tails; so each begins with other ones, and they rarely meet.

    >>> turns_of(range(2, 62))[:4], turns_of(range(2, 62))[62:]
    ((62, 63, 0, 0), (60, 61))
    """
    first = min(owned, default=0)
    return tuple(0 if shard in owned or not owned else (shard - first) % SHARDS for shard in range(SHARDS))


def slot_rank(ready: Ready, turns: Turns = ONE_TURN) -> SlotRank:
    """The place of a slot in its group, smaller first: retries descending, a sibling returned first, turn, id.

    Slots of shards whose turn comes later stand by descending id: the worker that owns them begins at the other end.

    >>> from domain.units import InstanceId, JobId
    >>> slot_rank(Ready(InstanceId(9), JobId(4), BatchId(1), JobClassId(1), retries=2, sibling_returned=True))
    (-2, False, 0, 9)
    """
    turn = turns[ready.job_id % SHARDS]
    return -ready.retries, not ready.sibling_returned, turn, -ready.instance_id if turn else ready.instance_id


def reading_rank(ready: Ready, turns: Turns) -> SlotRank:
    """The place of an instance among those that are to become slots: as `slot_rank`, but ascending ids throughout.

    A cursor passes the instances of a shard one after the other.
    """
    return -ready.retries, not ready.sibling_returned, turns[ready.job_id % SHARDS], ready.instance_id


class Group:
    """The slots of one class of one batch, retries apart from the rest.

    What `slots()` returned never changes afterwards, so a request may take slots while it walks them.
    """

    __slots__ = ("_slots", "_turns", "batch", "foreign", "job_class", "key", "sticky_files", "urgent")

    def __init__(self, batch: Batch, job_class: JobClass, *, urgent: bool, turns: Turns = ONE_TURN) -> None:
        self.batch = batch
        self.job_class = job_class
        self.urgent = urgent
        self.key: GroupKey = (batch.batch_id, job_class.job_class_id, urgent)
        self.sticky_files = frozenset(file.name for file in job_class.inputs if file.sticky)
        self._slots = SortedSlots()
        self._turns = turns
        self.foreign = 0  # slots of shards whose turn comes later

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Ready]:
        """The slots in order; the group must not change meanwhile."""
        return iter(self._slots)

    @property
    def rank(self) -> GroupRank:
        """The place of the group among groups, smaller first. No two groups have the same."""
        return self.batch.order_tier, self.batch.order_key, self._slots.first_rank

    def slots(self) -> Sequence[Ready]:
        """The group's slots in order, as they are now."""
        return self._slots.lent()

    def take_turns(self, turns: Turns) -> None:
        """Stand in the order of other turns from now on."""
        self._turns = turns
        self._slots = SortedSlots((slot_rank(slot, turns), slot) for slot in self._slots)
        self.foreign = sum(map(self.is_foreign, self._slots))

    def add(self, ready: Ready) -> None:
        self._slots.add(slot_rank(ready, self._turns), ready)
        self.foreign += self.is_foreign(ready)

    def remove(self, ready: Ready) -> None:
        """Take out a slot that is in the group."""
        self._slots.remove(slot_rank(ready, self._turns))
        self.foreign -= self.is_foreign(ready)

    def is_foreign(self, ready: Ready) -> bool:
        """Whether other workers begin with the slot, and this one comes to it later."""
        return self._turns[ready.job_id % SHARDS] > 0
