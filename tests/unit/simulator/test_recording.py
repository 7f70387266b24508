from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import Instant
from simulator.client import SimulatedVolunteer
from simulator.recording import ProcessorUse, WorkSample, processor_use
from tests.unit.simulator.machines import HOUR, START, a_reply, at, next_call, on_during, traits, volunteer


def samples(*waits: bool) -> list[WorkSample]:
    """Return one sample per hour."""
    return [WorkSample(at(float(hour)), one) for hour, one in enumerate(waits)]


def with_a_job(hours: float, *, ncpus: int = 1, share: float = 1.0, until: float = 1e6) -> SimulatedVolunteer:
    one = volunteer(traits(ncpus=ncpus, share=share), availability=on_during((0.0, until)))
    now, _ = next_call(one, at(0.0))
    assert now == START
    one.receive(a_reply("pi_1_1_1", hours=hours), now)
    return one


def use_of(waits: Sequence[bool], *volunteers: SimulatedVolunteer) -> ProcessorUse:
    return processor_use(samples(*waits), volunteers, at(float(len(waits))))


def test_use_is_job_time_over_available_time() -> None:
    found = use_of([True] * 10, with_a_job(5.0))

    assert found.fraction == pytest.approx(0.5)
    assert list(found.by_day) == [pytest.approx(0.5)]


def test_use_counts_hours_in_which_work_waits_at_both_ends() -> None:
    found = use_of([True, True, True, False, False, True, False, False], with_a_job(1.0))

    assert found.fraction == pytest.approx(0.5)  # the hours from 0 to 2


def test_use_of_a_day_without_waiting_work_is_none() -> None:
    found = use_of([False] * 24 + [True] * 24 + [False], with_a_job(36.0))

    assert list(found.by_day) == [None, pytest.approx(12 / 23), None]


def test_use_leaves_out_the_time_a_computer_is_off() -> None:
    assert use_of([True] * 10, with_a_job(20.0, until=4.0)).fraction == pytest.approx(1.0)


def test_use_weighs_computers_by_their_processors_and_share() -> None:
    found = use_of([True] * 10, with_a_job(100.0), with_a_job(0.001, ncpus=6, share=0.5))

    assert found.fraction == pytest.approx(10.0 / (10.0 + 30.0), rel=1e-3)


def test_use_is_unknown_where_work_never_waits() -> None:
    assert use_of([False] * 5, with_a_job(1.0)) == ProcessorUse()
    assert processor_use([], [], Instant(0.0)) == ProcessorUse()


@given(
    st.lists(st.floats(0.1, 30.0), max_size=5),
    st.integers(1, 4),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.floats(5.0, 200.0),
    st.lists(st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)), min_size=1, max_size=6),
)
def test_use_is_a_fraction(
    hours: list[float], ncpus: int, share: float, due_hours: float, on_off: list[tuple[float, float]]
) -> None:
    begin, intervals = 0.0, []
    for on, off in on_off:
        intervals.append((begin, begin + on))
        begin += on + off
    one = volunteer(traits(ncpus=ncpus, share=share), availability=on_during(*intervals))
    now, _ = next_call(one, at(0.0))
    for number, length in enumerate(hours):
        one.receive(a_reply(f"pi_1_{number}_1", hours=length, due_hours=due_hours), now)
    found = use_of([True] * 48, one)

    assert all(part is None or 0.0 <= part <= 1.0 + 1e-9 for part in (*found.by_day, found.fraction))
    assert found.fraction is not None
    available_s = sum(off_at - on_at for on_at, off_at in intervals if off_at <= 48.0) * HOUR * ncpus * share
    if begin < 48.0:
        assert found.fraction * available_s <= sum(hours) * HOUR + 1.0
