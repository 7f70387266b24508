"""Which slots of a group may a host have, one by one? Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

from domain.jobs import Ready
from domain.refusals import Refusal, RefusalCode
from domain.units import JobId
from scheduler.asking import Asking
from scheduler.feasibility import hr_class_of, hr_refusal
from scheduler.gates import draw
from scheduler.ports import JobArray, SlotGroup
from scheduler.redundancy import uncommitted_refusal

SLOTS_KEPT = 128  # sequences of slots of which is known which are for newcomers


def after_retries(slots: Sequence[Ready]) -> int:
    """Where the slots without retries begin; they come last.

    >>> from domain.jobs import Ready
    >>> after_retries([Ready(1, 1, 1, 1, retries=2), Ready(2, 2, 1, 1, retries=1), Ready(3, 3, 1, 1)])
    2
    """
    if slots[-1].retries > 0:
        return len(slots)
    return bisect_left(slots, 0, key=lambda slot: -slot.retries)


def next_for_newcomers(slots: Sequence[Ready], at: int, fraction: float, *, most: int) -> tuple[int, int]:
    """How many slots from `at` on were looked at in vain, and the place of the next that is for newcomers.

    At most `most` are looked at; the place is the end where none of them is. None is of urgent slots.

    >>> from domain.jobs import Ready
    >>> slots = [Ready(i, i, 1, 1) for i in range(1, 101)]
    >>> next_for_newcomers(slots, 0, 0.05, most=64), next_for_newcomers(slots, 0, 0.05, most=8)
    ((43, 43), (8, 100))
    """
    if fraction <= 0.0 or slots[at].urgent:
        return 0, len(slots)
    end = min(len(slots), at + most)
    place = _drawn(_Slots(slots), fraction).first(at, end)
    return (end - at, len(slots)) if place is None else (place - at, place)


class _Slots:
    """Slots of a group as they once were, which never change: the same as themselves alone."""

    __slots__ = ("slots",)

    def __init__(self, slots: Sequence[Ready]) -> None:
        self.slots = slots

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Slots) and other.slots is self.slots

    def __hash__(self) -> int:
        return id(self.slots)


class _Drawn:
    """Which places have slots for newcomers, found out as far as it was asked: hosts in vain look at the same again."""

    __slots__ = ("_fraction", "_looked_at", "_places", "_slots")

    def __init__(self, slots: Sequence[Ready], fraction: float) -> None:
        self._slots = slots
        self._fraction = fraction
        self._places: list[int] = []
        self._looked_at = 0

    def first(self, at: int, end: int) -> int | None:
        """The first such place from `at` on and before `end`."""
        after = bisect_left(self._places, at)
        if after < len(self._places):
            return self._places[after] if self._places[after] < end else None
        for place, slot in enumerate(islice(self._slots, self._looked_at, end), self._looked_at):
            if draw(slot.instance_id) < self._fraction:
                self._places.append(place)
                self._looked_at = place + 1
                if place >= at:
                    return place
        self._looked_at = max(self._looked_at, end)
        return None


@lru_cache(maxsize=SLOTS_KEPT)
def _drawn(slots: _Slots, fraction: float) -> _Drawn:
    return _Drawn(slots.slots, fraction)


def job_refusal(
    slot: Ready, group: SlotGroup, asking: Asking, array: JobArray, *, in_reply: Collection[JobId]
) -> Refusal | None:
    """The checks of a single job: one instance per host and volunteer, hosts alike. `in_reply`: given already."""
    if slot.job_id in in_reply:
        return Refusal(RefusalCode.SAME_HOST, "job {0} has another instance in this reply", (slot.job_id,))
    if slot.hr_class:
        refusal = hr_refusal(slot, hr_class_of(asking.host, group.job_class.hr_type))
        if refusal is not None:
            return refusal
    elif group.job_class.hr_type:
        host_class = hr_class_of(asking.host, group.job_class.hr_type)
        refusal = uncommitted_refusal(slot, group, asking.catalogue.host_classes, host_class)
        if refusal is not None:
            return refusal
    code = array.may_have(slot, asking.host.host_id, asking.volunteer.volunteer_id)
    if code is not None:
        return Refusal(code, "job {0} already has an instance there", (slot.job_id,))
    return None
