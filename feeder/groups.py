"""Which slots are alike for every decision, and in which order they stand."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from domain.batches import Batch
from domain.jobs import JobClass, Ready
from domain.units import BatchId, InstanceId, JobClassId

GroupKey = tuple[BatchId, JobClassId, bool]  # batch, class, urgent
SlotRank = tuple[int, bool, InstanceId]
GroupRank = tuple[int, float, SlotRank]


def group_key(ready: Ready) -> GroupKey:
    """The group an instance belongs to."""
    return ready.batch_id, ready.job_class_id, ready.urgent


def slot_rank(ready: Ready) -> SlotRank:
    """The place of a slot in its group, smaller first: retries descending, a sibling returned first, then id.

    >>> from domain.units import JobId
    >>> slot_rank(Ready(InstanceId(9), JobId(4), BatchId(1), JobClassId(1), retries=2, sibling_returned=True))
    (-2, False, 9)
    """
    return -ready.retries, not ready.sibling_returned, ready.instance_id


class Group:
    """The slots of one class of one batch, retries apart from the rest.

    What `slots()` returned never changes afterwards, so a request may take slots while it walks them:
    the first change after a call copies the list (a few microseconds for 10,000 slots), later ones do not.
    """

    __slots__ = ("_lent", "_slots", "batch", "job_class", "sticky_files", "urgent")

    def __init__(self, batch: Batch, job_class: JobClass, *, urgent: bool) -> None:
        self.batch = batch
        self.job_class = job_class
        self.urgent = urgent
        self.sticky_files = frozenset(file.name for file in job_class.inputs if file.sticky)
        self._slots: list[Ready] = []
        self._lent = False

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def key(self) -> GroupKey:
        return self.batch.batch_id, self.job_class.job_class_id, self.urgent

    @property
    def first(self) -> Ready:
        return self._slots[0]

    @property
    def last(self) -> Ready:
        return self._slots[-1]

    @property
    def rank(self) -> GroupRank:
        """The place of the group among groups, smaller first. No two groups have the same."""
        return self.batch.order_tier, self.batch.order_key, slot_rank(self._slots[0])

    def slots(self) -> Sequence[Ready]:
        """The group's slots in order, as they are now."""
        self._lent = True
        return self._slots

    def add(self, ready: Ready) -> None:
        self._copy_if_lent()
        if not self._slots or slot_rank(self._slots[-1]) < slot_rank(ready):
            self._slots.append(ready)
        else:
            insort(self._slots, ready, key=slot_rank)

    def remove(self, ready: Ready) -> None:
        """Take out a slot that is in the group."""
        self._copy_if_lent()
        place = bisect_left(self._slots, slot_rank(ready), key=slot_rank)
        assert self._slots[place].instance_id == ready.instance_id
        del self._slots[place]

    def _copy_if_lent(self) -> None:
        if self._lent:
            self._slots = self._slots.copy()
            self._lent = False
