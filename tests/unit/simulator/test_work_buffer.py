from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.units import Instant, Seconds
from simulator.work_buffer import NO_WISH, Buffer, free_s, in_progress, low_after_s, wish_of, work_of_others
from tests.unit.simulator.machines import HOUR, START, a_task, at, processors

BUFFER = Buffer(Seconds(1 * HOUR), Seconds(9 * HOUR))


def test_idle_host_requests_a_full_buffer_and_idle_processors() -> None:
    wish = wish_of(processors(4), BUFFER)

    assert (wish.req_s, wish.instances) == (40 * HOUR, 4.0)


def test_the_share_of_other_projects_is_not_asked_for() -> None:
    wish = wish_of(processors(4, share=0.5), BUFFER)

    assert (wish.req_s, wish.instances) == (20 * HOUR, 2.0)


def test_it_asks_for_what_is_missing() -> None:
    some = processors(2)
    some.add([a_task("a", 2.0)], at(0.0))
    wish = wish_of(some, BUFFER)

    assert (wish.req_s, wish.instances) == (18 * HOUR, 1.0)


def test_long_job_covers_only_its_own_processor() -> None:
    some = processors(4)
    some.add([a_task("a", 1000.0)], at(0.0))

    assert wish_of(some, BUFFER).req_s == 3 * 10 * HOUR
    assert low_after_s(some, BUFFER) == 0.0


def test_nothing_is_asked_for_when_the_upper_end_is_covered() -> None:
    some = processors(2)
    some.add([a_task("a", 10.0), a_task("b", 12.0)], at(0.0))

    assert wish_of(some, BUFFER) == NO_WISH


def test_the_buffer_is_low_below_its_lower_end() -> None:
    some = processors(2)
    some.add([a_task("a", 3.5), a_task("b", 2.0)], at(0.0))

    assert low_after_s(some, BUFFER) == HOUR
    some.advance(at(0.75))
    assert low_after_s(some, BUFFER) == pytest.approx(0.25 * HOUR)
    some.advance(at(1.5))
    assert low_after_s(some, BUFFER) == 0.0


def test_a_part_of_a_processor_is_a_slower_one() -> None:
    some = processors(3, share=0.5)
    some.add([a_task("a", 3.0), a_task("b", 6.0)], at(0.0))

    assert free_s(some) == [4 * HOUR, 8 * HOUR]
    assert low_after_s(some, BUFFER) == pytest.approx(3 * HOUR / (4 / 3))


def test_a_computer_that_is_often_off_asks_for_less() -> None:
    some = processors()
    some.fraction = 0.5
    some.add([a_task("a", 1.0)], at(0.0))

    assert wish_of(some, BUFFER).req_s == 8 * HOUR


def test_delay_is_the_first_processor_free_of_endangered_jobs() -> None:
    some = processors(2)
    some.add([a_task("a", 2.0, due_hours=1.0), a_task("b", 3.0, due_hours=1.0)], at(0.0))
    relaxed = processors(2)
    relaxed.add([a_task("a", 2.0), a_task("b", 3.0)], at(0.0))
    waiting = Buffer(Seconds(10 * HOUR), Seconds(0.0))

    assert wish_of(some, waiting).estimated_delay_s == 2 * HOUR
    assert wish_of(relaxed, waiting).estimated_delay_s == 0.0


def test_jobs_are_listed_with_their_remaining_time() -> None:
    some = processors()
    some.add([a_task("a", 2.0, due_hours=50.0)], at(0.0))
    some.advance(at(0.5))
    (told,) = in_progress(some.tasks, "")

    assert (told.name, told.report_deadline, told.ncpus, told.gpu_count) == ("a", at(50.0), 1.0, 0.0)
    assert told.remaining_s == pytest.approx(1.5 * HOUR, rel=1e-6)


def test_other_projects_keep_their_share_of_the_buffer_filled() -> None:
    others = work_of_others(processors(4, share=0.25), BUFFER, at(0.0))

    assert sum(one.remaining_s for one in others) == 0.75 * 4 * BUFFER.full_s
    assert len({one.name for one in others}) == len(others) == 3


def test_alone_on_a_computer_there_is_no_other_work() -> None:
    assert work_of_others(processors(4), BUFFER, at(0.0)) == ()


tasks = st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.1, 100.0)), max_size=10)


@given(tasks, st.integers(1, 8), st.sampled_from([0.1, 0.5, 1.0]), st.floats(0.01, 1.0), st.floats(0.0, 50.0))
def test_a_wish_is_never_negative_and_never_more_than_the_buffer(
    lengths: list[tuple[float, float]], count: int, share: float, fraction: float, later: float
) -> None:
    some = processors(count, share=share)
    some.fraction = fraction
    some.add([a_task(f"t{n}", hours, due_hours=due) for n, (hours, due) in enumerate(lengths)], at(0.0))
    some.advance(at(later))
    wish = wish_of(some, BUFFER)

    assert 0.0 <= wish.req_s <= count * share * BUFFER.full_s
    assert 0.0 <= wish.instances <= count
    assert wish.estimated_delay_s >= 0.0
    assert all(task.remaining_s >= 0.0 for task in some.tasks)


@settings(max_examples=200)
@given(
    tasks,
    st.integers(1, 5),
    st.sampled_from([0.3, 0.5, 0.75, 1.0]),
    st.floats(0.2, 3.0),
    st.sampled_from([1.0, 2.0, 0.5]),
    st.lists(st.booleans(), min_size=10, max_size=10),
    st.floats(0.0, 1.0),
)
def test_the_buffer_is_not_low_before_the_bound(
    lengths: list[tuple[float, float]],
    count: int,
    share: float,
    estimate: float,
    usage: float,
    lost: list[bool],
    part: float,
) -> None:
    """The bound holds for any estimates and any order of execution, until a task ends or comes into danger."""
    some = processors(count, share=share)
    made = [
        a_task(f"t{n}", hours, due_hours=due, ncpus=min(usage, count), lost=lost[n] and due > 90.0)
        for n, (hours, due) in enumerate(lengths)
    ]
    for task in made:
        task.estimate_s = task.true_s * estimate
    some.add(made, at(0.0))
    after_s = low_after_s(some, BUFFER)
    until = min(after_s, some.next_at - START) * part
    some.advance(Instant(START + until))

    if after_s > 0.0 and until < min(after_s, some.next_at - START):
        assert free_s(some)[0] >= BUFFER.margin_s - 1e-3
        assert low_after_s(some, BUFFER) >= 0.0
