"""Which slots a newcomer looks at in vain, and which is the next for it."""

from __future__ import annotations

from domain.draws import draw
from domain.jobs import Ready
from scheduler.slots import next_for_newcomers
from tests.builders import a_ready
from tests.unit.scheduler.arrays import ListGroup, a_group

FRACTION = 0.05


def some_slots(count: int) -> tuple[ListGroup, list[Ready]]:
    group = a_group(size=count)
    return group, group.ready


def looked_for(slots: list[Ready], at: int, most: int) -> tuple[int, int]:
    """The definition, slot by slot."""
    end = min(len(slots), at + most)
    for place in range(at, end):
        if draw(slots[place].instance_id) < FRACTION:
            return place - at, place
    return end - at, len(slots)


def test_the_next_slot_for_newcomers_is_what_looking_one_by_one_finds() -> None:
    group, slots = some_slots(200)
    for at in range(200):
        for most in (1, 8, 64, 1024):
            assert next_for_newcomers(group, slots, at, FRACTION, most=most) == looked_for(slots, at, most)


def test_newcomers_that_get_nothing_look_at_nothing() -> None:
    group, slots = some_slots(10)

    assert next_for_newcomers(group, slots, 0, 0.0, most=8) == (0, 10)


def test_urgent_slots_are_for_no_newcomer() -> None:
    group = a_group(ready=[a_ready(retries=1)])

    assert next_for_newcomers(group, group.slots(), 0, 1.0, most=8) == (0, 1)
