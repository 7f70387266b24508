"""The unsent instances of one batch, in the two ranges the feeder reads: fresh per shard, and urgent.

Fresh ids are appended in ascending order and skipped, not removed, once they are no longer waiting; a
head moves past them and never back, so no read walks over the same dispatched instances twice. Urgent
instances are few: one sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from domain.units import InstanceId

COMPACT_FROM = 4096  # skipped ids that are cut off at once

Row = TypeVar("Row")
FreshOf = Callable[[Sequence[InstanceId]], list[Row]]  # of those still waiting, in the same order, what is stored


@dataclass(slots=True, eq=False)
class FreshQueue:
    """Instance ids of one shard, ascending; those before `head` are no longer fresh."""

    ids: list[InstanceId] = field(default_factory=list)
    head: int = 0

    def after(self, instance_id: InstanceId, limit: int, fresh_of: FreshOf[Row]) -> list[Row]:
        """The first `limit` fresh ones greater than `instance_id`, ascending."""
        ids = self.ids
        start = bisect_right(ids, instance_id, lo=self.head)
        found = fresh_of(ids[start : start + limit])
        if len(found) == limit:
            return found
        end = start + limit
        while len(found) < limit and end < len(ids):
            start, end = end, end + limit - len(found)
            found += fresh_of(ids[start:end])
        self._advance(fresh_of)
        return found

    def _advance(self, fresh_of: FreshOf[Row]) -> None:
        ids, head = self.ids, self.head
        while head < len(ids) and not fresh_of(ids[head : head + 1]):
            head += 1
        if head >= COMPACT_FROM:
            del ids[:head]
            head = 0
        self.head = head


@dataclass(slots=True, eq=False)
class WaitingQueues:
    fresh: dict[int, FreshQueue] = field(default_factory=dict)  # by shard
    urgent: list[tuple[int, InstanceId]] = field(default_factory=list)  # (-retries, id), sorted

    def add_fresh(self, shard: int, instance_id: InstanceId) -> None:
        """Append; `instance_id` is greater than every id before it."""
        queue = self.fresh.get(shard)
        if queue is None:
            queue = self.fresh[shard] = FreshQueue()
        queue.ids.append(instance_id)

    def add_urgent(self, retries: int, instance_id: InstanceId) -> None:
        insort(self.urgent, (-retries, instance_id))

    def remove_urgent(self, retries: int, instance_id: InstanceId) -> None:
        del self.urgent[bisect_left(self.urgent, (-retries, instance_id))]
