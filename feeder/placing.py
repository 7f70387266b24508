"""Turns the instances that were read into slots: in order, within the plan, replacing slots that exceed the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from domain.batches import Batch
from domain.jobs import Candidate, JobClass
from domain.quick import quick_dataclass
from domain.units import InstanceId, JobClassId
from feeder.array import JobArray
from feeder.cursors import Cursors
from feeder.partitions import Part


@quick_dataclass(frozen=True, slots=True)
class Offer:
    """An instance that was read. `by_cursor`: a cursor read it, and moves past it once it is processed."""

    candidate: Candidate
    by_cursor: bool


class Placing:
    """The changes that one refill makes to the array. Synchronous."""

    def __init__(
        self,
        array: JobArray,
        cursors: Cursors,
        *,
        classes: Mapping[JobClassId, JobClass],
        slots: int,
        target: Mapping[Part, int],
    ) -> None:
        self._array = array
        self._cursors = cursors
        self._classes = classes
        self._slots = slots
        self.offered = 0
        self.placed = 0
        self.dropped = 0
        held = array.slots_of_parts()
        self.wanted = {part: max(0, count - held.get(part, 0)) for part, count in target.items()}
        self._surplus = {part: count - target.get(part, 0) for part, count in held.items()}
        self._victims = self._over_plan()

    def place(self, batch: Batch, offers: Sequence[Offer], most: int) -> bool:
        """Turn the first offers, at most `most`, into slots in slot order. Return whether all offers were processed."""
        count = 0
        self.offered += len(offers)
        for offer in offers:
            if self._place_one(batch, offer.candidate, room=count < most):
                count += 1
            elif not self._array.remembers(offer.candidate.ready):
                return False
            if offer.by_cursor:
                self._cursors.advance(offer.candidate.ready)
        return True

    def trim(self) -> None:
        """Drop slots beyond the configured number, added by searches or left after the setting was lowered."""
        while len(self._array) > self._slots and self._evict_one():
            pass
        if len(self._array) > self._slots:
            in_order = [slot.instance_id for group in self._array.groups() for slot in group.slots()]
            for instance_id in in_order[self._slots :]:
                self._let_go(instance_id)

    def keep_bounds(self) -> None:
        """Drop slots beyond the plan in batches with a usage limit, because requests would otherwise send them."""
        for group in reversed(self._array.groups()):
            part = (group.batch.batch_id, group.urgent)
            if group.batch.sent_most is not None and self._surplus.get(part, 0) > 0:
                over = list(group.slots())[-self._surplus[part] :]
                self._surplus[part] -= len(over)
                for slot in over:
                    self._let_go(slot.instance_id)

    def _place_one(self, batch: Batch, candidate: Candidate, *, room: bool) -> bool:
        """Place one instance. Return whether it became a new slot."""
        ready = candidate.ready
        if ready.instance_id in self._array:
            self._array.place(candidate, batch, self._classes[ready.job_class_id])  # updates its siblings
            return False
        if self._array.remembers(ready):
            if self._array.rotation.is_out(ready):
                self._array.rotation.pass_over(ready)
            return False
        if not room or not (len(self._array) < self._slots or self._evict_one()):
            return False
        self._array.place(candidate, batch, self._classes[ready.job_class_id])
        self.placed += 1
        return True

    def _evict_one(self) -> bool:
        """Drop the last slot, in order, that exceeds the plan. Return False if there is none."""
        instance_id = next(self._victims, None)
        if instance_id is None:
            return False
        self._let_go(instance_id)
        return True

    def _over_plan(self) -> Iterator[InstanceId]:
        """Yield the slots of parts with more slots than planned, last in order first."""
        for group in reversed(self._array.groups()):
            part = (group.batch.batch_id, group.urgent)
            for slot in reversed(group.slots()):
                if self._surplus.get(part, 0) <= 0:
                    break
                self._surplus[part] -= 1
                yield slot.instance_id

    def _let_go(self, instance_id: InstanceId) -> None:
        ready = self._array.drop(instance_id)
        if ready is not None:
            self._cursors.rewind(ready)
            self.dropped += 1
