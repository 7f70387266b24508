from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import Ready
from domain.units import InstanceId
from feeder.groups import PIECE, SortedSlots, slot_rank
from tests.builders import a_ready


def a_slot(number: int) -> Ready:
    return a_ready(instance_id=InstanceId(number))


def filled(numbers: range) -> SortedSlots:
    return SortedSlots((slot_rank(a_slot(number)), a_slot(number)) for number in numbers)


def ids(slots: SortedSlots) -> list[int]:
    return [slot.instance_id for slot in slots]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 700)), max_size=600), st.integers(0, 500))
def test_slots_stay_sorted_and_snapshots_never_change(steps: list[tuple[bool, int]], already: int) -> None:
    slots, expected = filled(range(1, already + 1)), set(range(1, already + 1))
    for place, (add, number) in enumerate(steps):
        before, then = slots.lent(), sorted(expected)
        if add and number not in expected:
            slots.add(slot_rank(a_slot(number)), a_slot(number))
            expected.add(number)
        elif not add and number in expected:
            assert slots.remove(slot_rank(a_slot(number))).instance_id == number
            expected.remove(number)
        if place % 50 == 0:
            assert [slot.instance_id for slot in before] == then
    assert ids(slots) == sorted(expected)
    assert len(slots) == len(expected)


def test_what_was_lent_is_a_sequence() -> None:
    numbers = range(1, 3 * PIECE)
    lent = filled(numbers).lent()
    assert (len(lent), lent[0].instance_id, lent[-1].instance_id) == (len(numbers), 1, numbers[-1])
    assert [lent[place].instance_id for place in range(len(lent))] == list(numbers)
    assert [slot.instance_id for slot in reversed(lent)] == list(reversed(numbers))
    assert [slot.instance_id for slot in lent[5:8]] == [6, 7, 8]
    with pytest.raises(IndexError, match="below 383, got 383"):
        lent[len(lent)]


def test_slots_are_lent_as_the_same_object_until_they_change() -> None:
    slots = filled(range(1, 10))
    lent = slots.lent()
    assert slots.lent() is lent
    slots.remove(slot_rank(a_slot(1)))
    assert slots.lent() is not lent
