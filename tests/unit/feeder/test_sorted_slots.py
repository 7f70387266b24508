from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.draws import first_drawn
from domain.jobs import Ready
from domain.units import InstanceId
from feeder.groups import slot_rank
from feeder.sorted_slots import PIECE, SortedSlots
from tests.builders import a_ready


def a_slot(number: int) -> Ready:
    return a_ready(instance_id=InstanceId(number))


def filled(numbers: range) -> SortedSlots:
    return SortedSlots((slot_rank(a_slot(number)), a_slot(number)) for number in numbers)


def ids(slots: SortedSlots) -> list[int]:
    return [slot.instance_id for slot in slots]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 700)), max_size=600), st.integers(0, 500))
def test_slots_stand_in_order_and_what_was_lent_stays_whatever_comes_and_goes(
    steps: list[tuple[bool, int]], already: int
) -> None:
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


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 700)), max_size=100),
    st.integers(0, 500),
    st.sampled_from([0.01, 0.05, 0.5, 1.0]),
    st.tuples(st.integers(0, 600), st.integers(0, 600)),
)
def test_the_first_slot_that_is_drawn_is_found_whatever_came_and_went_since_it_was_asked_for(
    steps: list[tuple[bool, int]], already: int, fraction: float, places: tuple[int, int]
) -> None:
    slots, held = filled(range(1, already + 1)), set(range(1, already + 1))
    slots.first_drawn(0, 1, fraction)
    for add, number in steps:
        if add and number not in held:
            slots.add(slot_rank(a_slot(number)), a_slot(number))
            held.add(number)
        elif not add and number in held:
            slots.remove(slot_rank(a_slot(number)))
            held.remove(number)
    at, end = min(places), max(places)
    assert slots.first_drawn(at, end, fraction) == first_drawn(slots.lent(), at, end, fraction)
    assert slots.first_drawn(at, end, 0.2) == first_drawn(slots.lent(), at, end, 0.2)
