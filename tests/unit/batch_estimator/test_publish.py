"""When the published completion time changes, and why."""

from __future__ import annotations

import pytest

from batch_estimator.forecast import Forecast
from batch_estimator.publish import Publication, at_risk, operator_flag, publication
from domain.forecasts import Change, Method
from domain.units import DAY_S, Instant, Seconds
from tests.unit.batch_estimator.snapshots import NOW

BOUND_S = Seconds(10 * DAY_S)


def in_days(days: float) -> Instant:
    return Instant(NOW + days * DAY_S)


def a_forecast(days: float) -> Forecast:
    return Forecast(NOW, in_days(days / 2), in_days(days * 0.75), in_days(days), Method.WARM, "from a test")


def published(
    days: float, *, previous: float | None = None, long_deadline: bool = False, dispatched: float | None = None
) -> Publication:
    return publication(
        a_forecast(days),
        previous_at=None if previous is None else in_days(previous),
        long_deadline=long_deadline,
        delay_bound_s=BOUND_S,
        last_first_dispatch_at=None if dispatched is None else in_days(dispatched),
    )


def test_the_first_estimate_is_q90() -> None:
    assert published(5.0) == Publication(in_days(5.0), Change.FIRST, "first estimate: q90 from a test")


def test_a_long_deadline_batch_gives_its_last_first_instance_a_whole_bound() -> None:
    floored = published(5.0, long_deadline=True, dispatched=-1.0)

    assert floored.completion_at == in_days(9.0)
    assert floored.because == "first estimate: D after the last first dispatch"


def test_no_other_batch_has_a_floor() -> None:
    assert published(5.0, dispatched=-1.0).completion_at == in_days(5.0)


def test_the_floor_lowers_nothing() -> None:
    assert published(12.0, long_deadline=True, dispatched=-1.0).completion_at == in_days(12.0)


def test_before_the_first_dispatch_there_is_no_floor() -> None:
    assert published(5.0, long_deadline=True).completion_at == in_days(5.0)


@pytest.mark.parametrize(("previous", "new"), [(10.0, 11.4), (10.0, 8.6), (1.0, 1.49)])
def test_a_small_change_is_held(previous: float, new: float) -> None:
    held = published(new, previous=previous)

    assert (held.completion_at, held.change) == (in_days(previous), Change.HELD)
    assert "is within the" in held.because


@pytest.mark.parametrize(("previous", "new"), [(10.0, 11.6), (10.0, 8.4), (1.0, 1.51)])
def test_a_large_change_is_published_with_both_numbers(previous: float, new: float) -> None:
    moved = published(new, previous=previous)

    assert (moved.completion_at, moved.change) == (in_days(new), Change.MOVED)
    assert "more than the" in moved.because
    assert "q90 from a test" in moved.because


def test_an_estimate_that_has_passed_is_replaced_however_near() -> None:
    assert published(0.01, previous=-0.01).change is Change.PASSED


@pytest.mark.parametrize(("previous", "new"), [(9.0, 9.2), (9.0, 5.0)])
def test_nothing_is_held_below_a_floor_that_has_risen(previous: float, new: float) -> None:
    moved = published(new, previous=previous, long_deadline=True, dispatched=-0.5)

    assert (moved.completion_at, moved.change) == (in_days(9.5), Change.MOVED)
    assert moved.because == "0.50 days later, since the floor has risen: D after the last first dispatch"


def test_a_forecast_without_end_is_no_number_to_go_by() -> None:
    held = published(101.0, previous=12.0)
    first = published(101.0)
    passed = published(101.0, previous=-1.0)

    assert (held.completion_at, held.change) == (in_days(12.0), Change.HELD)
    assert held.because == "q90 is more than 10 delay bounds ahead: what was published is held"
    assert (first.completion_at, first.change) == (in_days(100.0), Change.FIRST)
    assert (passed.completion_at, passed.change) == (in_days(100.0), Change.PASSED)


def test_a_forecast_without_end_is_not_held_below_the_floor_either() -> None:
    moved = published(101.0, previous=5.0, long_deadline=True, dispatched=-1.0)

    assert (moved.completion_at, moved.change) == (in_days(9.0), Change.MOVED)


def test_a_forecast_without_end_is_flagged() -> None:
    flag = operator_flag(a_forecast(101.0), delay_bound_s=BOUND_S, most_spent_fraction=0.0)

    assert flag == "complete at latest in 10.1 delay bounds: more than 10"


def test_a_job_that_uses_up_its_instances_is_flagged() -> None:
    flag = operator_flag(a_forecast(5.0), delay_bound_s=BOUND_S, most_spent_fraction=0.6)

    assert flag == "a job has used 60% of its spare instances: more than half"


def test_an_ordinary_batch_is_not_flagged() -> None:
    assert operator_flag(a_forecast(99.0), delay_bound_s=BOUND_S, most_spent_fraction=0.5) is None


def test_a_deadline_is_at_risk_when_q90_is_later() -> None:
    assert at_risk(a_forecast(8.0), in_days(7.0)) == "complete at latest 1.0 days after the deadline"
    assert at_risk(a_forecast(8.0), in_days(5.0)) == "complete about 1.0 days after the deadline"
    assert at_risk(a_forecast(8.0), in_days(8.0)) is None
