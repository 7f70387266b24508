"""Which slots are for newcomers is found out once for slots that stay as they are, and is what looking again finds."""

from __future__ import annotations

import random

from domain.jobs import Ready
from domain.units import BatchId, InstanceId, JobClassId, JobId
from scheduler.gates import draw
from scheduler.slots import next_for_newcomers

FRACTION = 0.05


def some_slots(first: int, count: int) -> list[Ready]:
    return [Ready(InstanceId(i), JobId(i), BatchId(1), JobClassId(1)) for i in range(first, first + count)]


def looked_for(slots: list[Ready], at: int, fraction: float, most: int) -> tuple[int, int]:
    """The definition, slot by slot."""
    end = min(len(slots), at + most)
    for place in range(at, end):
        if draw(slots[place].instance_id) < fraction:
            return place - at, place
    return end - at, len(slots)


def test_whatever_was_asked_before_each_answer_is_that_of_a_look_from_the_start() -> None:
    rng = random.Random(1)
    for first in (1, 5000):
        slots = some_slots(first, 300)
        for _ in range(300):
            at, most, fraction = rng.randrange(300), rng.choice((1, 8, 64, 1024)), rng.choice((0.01, FRACTION, 0.5))
            asked = (slots, at, fraction)
            assert next_for_newcomers(*asked, most=most) == looked_for(*asked, most)


def test_other_slots_are_looked_at_anew() -> None:
    slots = some_slots(1, 100)
    _, place = next_for_newcomers(slots, 0, FRACTION, most=100)
    without = [*slots[:place], *slots[place + 1 :]]

    assert next_for_newcomers(without, 0, FRACTION, most=100) == looked_for(without, 0, FRACTION, 100)
    assert next_for_newcomers(slots, 0, FRACTION, most=100) == (place, place)


def test_urgent_slots_are_for_no_newcomer() -> None:
    urgent = [Ready(InstanceId(1), JobId(1), BatchId(1), JobClassId(1), retries=1)]

    assert next_for_newcomers(urgent, 0, 1.0, most=8) == (0, 1)
