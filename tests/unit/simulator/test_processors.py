from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.processors import Processors, Task, in_turn_s
from tests.unit.simulator.machines import HOUR, a_task, at, on_during, processors


def run_out(some: Processors) -> list[tuple[str, float]]:
    """Return (name, hours since START) of every ended task, in order."""
    ended = some.advance(at(1e5))
    return [(one.task.name, round((one.at - at(0.0)) / HOUR, 6)) for one in ended]


def test_jobs_run_in_the_order_in_which_they_came() -> None:
    one = processors()
    one.add([a_task("a", 2.0), a_task("b", 1.0)], at(0.0))

    assert run_out(one) == [("a", 2.0), ("b", 3.0)]


def test_other_projects_have_their_share_of_the_processors() -> None:
    half = processors(4, share=0.5)
    half.add([a_task(name, 1.0) for name in "abcd"], at(0.0))

    assert run_out(half) == [("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", 2.0)]


def test_a_single_processor_is_shared_in_time() -> None:
    half = processors(1, share=0.5)
    half.add([a_task("a", 1.0)], at(0.0))

    assert run_out(half) == [("a", 2.0)]


def test_nothing_is_computed_while_the_computer_is_off() -> None:
    some = processors(availability=on_during((0.0, 1.0), (5.0, 9.0)))
    some.add([a_task("a", 2.0)], at(0.0))

    assert run_out(some) == [("a", 6.0)]


def test_a_job_in_danger_runs_first_and_others_wait() -> None:
    one = processors()
    one.add([a_task("long", 10.0, due_hours=100.0)], at(0.0))
    one.advance(at(1.0))
    one.add([a_task("soon", 2.0, due_hours=4.0)], at(1.0))

    assert run_out(one) == [("soon", 3.0), ("long", 12.0)]
    assert one.out_of_turn == 1
    assert one.preempted_s == 2.0 * HOUR


def test_a_job_in_danger_takes_the_processors_of_other_projects() -> None:
    half = processors(2, share=0.5)
    half.add([a_task("a", 3.0, due_hours=4.0), a_task("b", 3.0, due_hours=4.0)], at(0.0))

    ends = run_out(half)  # in turn b would end after 6 h, so it goes first; an hour later a is in danger, too
    assert [name for name, _ in ends] == ["b", "a"]
    assert ends[0] == ("b", 3.0)
    assert ends[1][1] == pytest.approx(4.0, abs=0.17)
    assert half.out_of_turn == 2
    assert half.preempted_s > 0.0


def test_the_earliest_deadline_comes_first_among_jobs_in_danger() -> None:
    one = processors()
    tasks = [a_task("x", 2.0, due_hours=1.5), a_task("y", 2.0, due_hours=1.0), a_task("z", 2.0, due_hours=1.2)]
    one.add(tasks, at(0.0))

    assert all(task.in_danger for task in tasks)
    assert [task.name for task in tasks if task.share > 0.0] == ["y"]


def test_the_margin_counts_as_late() -> None:
    careful, careless = processors(margin_s=2 * HOUR), processors()
    for one in (careful, careless):
        one.add([a_task("a", 3.0, due_hours=4.0)], at(0.0))
        run_out(one)

    assert (careful.out_of_turn, careless.out_of_turn) == (1, 0)


def test_only_unstarted_jobs_are_dropped_at_the_deadline() -> None:
    one = processors()
    one.add([a_task("a", 5.0, due_hours=2.0), a_task("b", 1.0, due_hours=3.0)], at(0.0))
    ended = one.advance(at(100.0))

    assert [(e.task.name, e.late, (e.at - at(0.0)) / HOUR) for e in ended] == [("b", True, 3.0), ("a", False, 5.0)]


def test_lost_job_never_runs_and_delays_no_other() -> None:
    one = processors()
    one.add([a_task("gone", 1.0, lost=True), a_task("a", 1.0)], at(0.0))

    assert run_out(one) == [("a", 1.0)]
    assert [task.name for task in one.tasks] == ["gone"]
    assert one.run == 1


def test_wide_job_runs_slower_on_fewer_processors() -> None:
    half = processors(8, share=0.5)
    half.add([a_task("wide", 1.0, ncpus=8.0)], at(0.0))

    assert run_out(half) == [("wide", 2.0)]


def test_a_job_that_is_given_up_leaves_its_processor_to_the_next() -> None:
    one = processors()
    first = a_task("a", 5.0)
    one.add([first, a_task("b", 1.0)], at(0.0))
    one.advance(at(1.0))
    one.remove(first, at(1.0))

    assert run_out(one) == [("b", 2.0)]


def test_without_jobs_nothing_happens() -> None:
    idle = processors()
    idle.plan(at(0.0))

    assert idle.next_at == math.inf
    assert idle.advance(at(5.0)) == []


def test_the_client_believes_its_own_measurement_more_and_more() -> None:
    task = Task("a", at(10.0), left_s=100.0, true_s=100.0, estimate_s=400.0)
    begun = Task("a", at(10.0), left_s=25.0, true_s=100.0, estimate_s=400.0, done_s=75.0)

    assert task.remaining_s == 400.0
    assert begun.remaining_s == pytest.approx(0.25 * (0.75 * 100.0 + 0.25 * 400.0))


jobs = st.lists(st.tuples(st.floats(0.1, 20.0), st.floats(0.5, 60.0)), min_size=1, max_size=8)


@given(jobs, st.integers(1, 4), st.sampled_from([0.25, 0.5, 1.0]))
def test_jobs_end_or_drop_and_never_share_a_processor(
    lengths: list[tuple[float, float]], count: int, share: float
) -> None:
    some = processors(count, share=share)
    tasks = [a_task(f"t{n}", hours, due_hours=due) for n, (hours, due) in enumerate(lengths)]
    some.add(tasks, at(0.0))
    ended = some.advance(at(1e5))

    assert sorted(one.task.name for one in ended) == sorted(task.name for task in tasks)
    for one in ended:
        done_s = sum(other.task.done_s for other in ended if other.at <= one.at)
        assert done_s <= count * (one.at - at(0.0)) + 1.0
        if not one.late:
            assert one.at - at(0.0) >= one.task.true_s - 1.0
    assert some.preempted_s >= 0.0
    assert some.out_of_turn <= some.run <= len(tasks)


@given(st.lists(st.floats(0.1, 50.0), min_size=2, max_size=7))
def test_jobs_in_danger_run_by_earliest_deadline(dues: list[float]) -> None:
    """Each job is as long as the time to its deadline: all but the first are in danger at once."""
    some = processors()
    tasks = [a_task(f"t{n}", 100.0, due_hours=due) for n, due in enumerate(dues)]
    some.add(tasks, at(0.0))

    running = [task for task in tasks if task.share > 0.0]
    assert running == [min(tasks, key=lambda task: (task.due_at, task.name))]


@given(st.lists(st.floats(1.0, 1e5), min_size=1, max_size=12), st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 3.5]))
def test_in_turn_queue_length_is_close_to_its_work(lengths: list[float], capacity: float) -> None:
    ends = in_turn_s([(length, 1.0) for length in lengths], capacity)

    assert max(ends) >= sum(lengths) / capacity - 1e-6
    assert max(ends) <= 2.0 * (sum(lengths) / capacity + max(lengths)) + 1e-6
    assert all(end >= length - 1e-9 for end, length in zip(ends, lengths, strict=True))
