"""The queues of waiting instances: order, cursors, and no second walk over what has gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.units import InstanceId
from store.memory.queues import COMPACT_FROM, FreshQueue, WaitingQueues


def ids(*numbers: int) -> list[InstanceId]:
    return [InstanceId(number) for number in numbers]


@given(
    present=st.sets(st.integers(1, 200)),
    gone=st.sets(st.integers(1, 200)),
    cursors=st.lists(st.integers(0, 201), min_size=1, max_size=5),
)
def test_a_cursor_sees_exactly_what_is_still_fresh_behind_it(
    present: set[int], gone: set[int], cursors: list[int]
) -> None:
    queue = FreshQueue(ids(*sorted(present)))

    for cursor in cursors:
        expected = sorted(number for number in present - gone if number > cursor)
        assert list(queue.after(InstanceId(cursor), lambda id_: id_ not in gone)) == expected


def test_instances_that_went_from_the_front_are_asked_about_once() -> None:
    asked: list[InstanceId] = []

    def still_fresh(instance_id: InstanceId) -> bool:
        asked.append(instance_id)
        return instance_id > 1000

    queue = FreshQueue(ids(*range(1, 1002)))
    assert list(queue.after(InstanceId(0), still_fresh)) == [1001]
    asked.clear()

    assert list(queue.after(InstanceId(0), still_fresh)) == [1001]
    assert set(asked) == {1001}


def test_a_long_run_of_gone_instances_is_cut_off() -> None:
    queue = FreshQueue(ids(*range(1, COMPACT_FROM + 2)))

    assert list(queue.after(InstanceId(0), lambda id_: id_ > COMPACT_FROM)) == [COMPACT_FROM + 1]
    assert (queue.ids, queue.head) == ([COMPACT_FROM + 1], 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), unique_by=lambda pair: pair[1]))
def test_urgent_instances_stay_sorted_by_retries_descending_then_id(pairs: list[tuple[int, int]]) -> None:
    queues = WaitingQueues()
    for retries, number in pairs:
        queues.add_urgent(retries, InstanceId(number))
    for retries, number in pairs[::2]:
        queues.remove_urgent(retries, InstanceId(number))

    left = sorted(pairs[1::2], key=lambda pair: (-pair[0], pair[1]))
    assert [number for _, number in queues.urgent] == [number for _, number in left]
