"""Tests the queues of unsent instances: order, cursors, and no second pass over removed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from domain.units import InstanceId
from store.memory.rows import BETWEEN, BLOCK, COMPACT_FROM, FreshQueue, Texts, WaitingQueues


def ids(*numbers: int) -> list[InstanceId]:
    return [InstanceId(number) for number in numbers]


def fresh(*gone: int, asked: list[int] | None = None) -> Callable[[Sequence[InstanceId]], list[int]]:
    """Numbers stand for stored instances; all except the removed ones are fresh."""

    def of(instance_ids: Sequence[InstanceId]) -> list[int]:
        if asked is not None:
            asked.extend(instance_ids)
        return [number for number in instance_ids if number not in gone]

    return of


@given(
    present=st.sets(st.integers(1, 200)),
    gone=st.sets(st.integers(1, 200)),
    reads=st.lists(st.tuples(st.integers(0, 201), st.integers(1, 210)), min_size=1, max_size=5),
)
def test_a_cursor_sees_the_first_that_are_still_fresh_behind_it(
    present: set[int], gone: set[int], reads: list[tuple[int, int]]
) -> None:
    queue = FreshQueue(ids(*sorted(present)))

    for cursor, limit in reads:
        expected = sorted(number for number in present - gone if number > cursor)[:limit]
        assert queue.after(InstanceId(cursor), limit, fresh(*gone)) == expected


def test_instances_that_went_from_the_front_are_asked_about_once() -> None:
    asked: list[int] = []
    queue = FreshQueue(ids(*range(1, 1002)))
    assert queue.after(InstanceId(0), 2, fresh(*range(1, 1001), asked=asked)) == [1001]
    asked.clear()

    assert queue.after(InstanceId(0), 2, fresh(*range(1, 1001), asked=asked)) == [1001]
    assert set(asked) == {1001}


def test_a_long_run_of_gone_instances_is_cut_off() -> None:
    queue = FreshQueue(ids(*range(1, COMPACT_FROM + 2)))

    assert queue.after(InstanceId(0), 2, fresh(*range(1, COMPACT_FROM + 1))) == [COMPACT_FROM + 1]
    assert (queue.ids, queue.head) == ([COMPACT_FROM + 1], 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), unique_by=lambda pair: pair[1]))
def test_urgent_instances_are_sorted_by_retries_then_id(pairs: list[tuple[int, int]]) -> None:
    queues = WaitingQueues()
    for retries, number in pairs:
        queues.add_urgent(retries, InstanceId(number))
    for retries, number in pairs[::2]:
        queues.remove_urgent(retries, InstanceId(number))

    left = sorted(pairs[1::2], key=lambda pair: (-pair[0], pair[1]))
    assert [number for _, number in queues.urgent] == [number for _, number in left]


@given(st.lists(st.text(st.characters(exclude_characters=BETWEEN, codec="utf-8"), max_size=9), max_size=12))
def test_each_text_is_found_by_its_number_in_any_order(some: list[str]) -> None:
    every = [f"{number} {text}" for number, text in enumerate(some * (BLOCK // 4))]
    texts = Texts()
    numbers = [texts.add(text) for text in every]

    assert numbers == list(range(len(every)))
    for number in reversed(numbers):
        assert texts[number] == every[number]


def test_texts_of_whole_blocks_take_a_part_of_their_length() -> None:
    texts = Texts()
    for number in range(4 * BLOCK):
        texts.add(f"row 1: throughput, due at the delay bound of 7 days, queue {number * 7919 % 100_000} s")

    kept = sum(len(block) for block in texts._blocks)
    assert kept < 4 * BLOCK * 25
