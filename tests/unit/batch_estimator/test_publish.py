"""When and why the published completion time changes."""

from __future__ import annotations

from typing import Any

import pytest

from batch_estimator.publish import (
    Forecast,
    Publication,
    fallback,
    most_spent_of,
    operator_flag,
    publication,
    recorded,
)
from batch_estimator.snapshot import InstanceStanding
from domain.batches import Batch, BatchCounts, QoS
from domain.forecasts import (
    Change,
    ForecastAge,
    ForecastRecord,
    ForecastStanding,
    ForecastState,
    Method,
    Trigger,
    risk_of,
    state_of,
)
from domain.units import DAY_S, BatchId, Instant, Seconds
from tests.builders import NOW, a_batch
from tests.facts import missing
from tests.unit.batch_estimator.snapshots import Sent, a_snapshot

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
    first = published(5.0)
    assert (first.completion_at, first.change) == (in_days(5.0), Change.FIRST)
    assert not missing(first.because, "first estimate:", "q90")


def test_long_deadline_floor_is_a_bound_after_last_dispatch() -> None:
    floored = published(5.0, long_deadline=True, dispatched=-1.0)

    assert floored.completion_at == in_days(9.0)
    assert not missing(floored.because, "first estimate:", "D after", "last first dispatch")


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
    assert not missing(moved.because, "12 h later", "floor", "D after", "last first dispatch")


def test_a_forecast_without_end_is_no_number_to_go_by() -> None:
    held = published(101.0, previous=12.0)
    first = published(101.0)
    passed = published(101.0, previous=-1.0)

    assert (held.completion_at, held.change) == (in_days(12.0), Change.HELD)
    assert not missing(held.because, "q90", "more than 10 delay bounds", "kept")
    assert (first.completion_at, first.change) == (in_days(100.0), Change.FIRST)
    assert (passed.completion_at, passed.change) == (in_days(100.0), Change.PASSED)


def test_infinite_forecast_respects_the_floor() -> None:
    moved = published(101.0, previous=5.0, long_deadline=True, dispatched=-1.0)

    assert (moved.completion_at, moved.change) == (in_days(9.0), Change.MOVED)


def test_a_forecast_without_end_is_flagged() -> None:
    flag = operator_flag(a_forecast(101.0), delay_bound_s=BOUND_S, most_spent_fraction=0.0)

    assert not missing(flag or "", "101 d", "more than 10", "bounds of 10 d")


def test_a_job_that_uses_up_its_instances_is_flagged() -> None:
    flag = operator_flag(a_forecast(5.0), delay_bound_s=BOUND_S, most_spent_fraction=0.6)

    assert not missing(flag or "", "60 % of its retries")


def test_an_ordinary_batch_is_not_flagged() -> None:
    assert operator_flag(a_forecast(99.0), delay_bound_s=BOUND_S, most_spent_fraction=0.5) is None


def a_wide_forecast(q90_days: float) -> Forecast:
    return Forecast(NOW, in_days(q90_days / 4), in_days(q90_days / 2), in_days(q90_days), Method.WARM, "from a test")


def a_standing(
    batch: Batch, *, checkpoint: float | None = None, bound_days: float = 7.0, limit: int = 8
) -> ForecastStanding:
    over = batch.counts.jobs_validated + batch.counts.jobs_failed
    age = ForecastAge(batch.batch_id, NOW, batch.completion_at, 0, over, batch.counts.jobs_total)
    return ForecastStanding(batch, age, Seconds(bound_days * DAY_S), limit, spread=1.25, checkpoint_fraction=checkpoint)


def a_record(
    forecast: Forecast, *, checkpoint: float | None = None, most_spent: int = 1, **changes: Any
) -> ForecastRecord:
    standing = a_standing(a_batch(**changes), checkpoint=checkpoint)
    return recorded(forecast, standing, Trigger.TIMER, most_spent=most_spent)


def test_the_floor_is_for_long_deadlines_alone() -> None:
    dispatched: dict[str, Any] = {"last_first_dispatch_at": in_days(1.0)}

    assert a_record(a_wide_forecast(5.0), qos=QoS.LONG_DEADLINE, **dispatched).completion_at == in_days(8.0)
    for qos in (QoS.AFAP, QoS.THROUGHPUT):
        assert a_record(a_wide_forecast(5.0), qos=qos, **dispatched).completion_at == in_days(5.0)


def test_quantiles_are_shown_when_completion_is_kept() -> None:
    made = a_record(a_wide_forecast(10.5), qos=QoS.AFAP, completion_at=in_days(10.0))

    assert (made.completion_at, made.change) == (in_days(10.0), Change.HELD)
    assert (made.q50_at, made.q90_at) == (in_days(5.25), in_days(10.5))


def test_a_job_that_nears_its_limit_is_flagged() -> None:
    assert a_record(a_wide_forecast(3.0), most_spent=4).flag is None
    flagged = a_record(a_wide_forecast(3.0), most_spent=5)
    assert not missing(flagged.flag or "", "62 % of its retries")


def test_a_fallback_is_flagged_with_its_reason() -> None:
    instead = fallback(now=NOW, delay_bound_s=Seconds(DAY_S), previous_at=None, because="no fit")

    assert a_record(instead).flag == "no forecast: no fit"


def test_fallback_gives_no_risk_and_no_quantiles() -> None:
    instead = fallback(now=NOW, delay_bound_s=Seconds(DAY_S), previous_at=in_days(9.0), because="no fit")
    made = a_record(instead, qos=QoS.SHORT_DEADLINE, deadline_at=in_days(2.0), completion_at=in_days(9.0))

    assert risk_of(in_days(2.0), made, NOW) is None
    assert state_of(made, Seconds(7 * DAY_S)) is not ForecastState.SHOWN


def test_far_quantiles_are_not_shown() -> None:
    assert state_of(a_record(a_wide_forecast(70.0)), Seconds(7 * DAY_S)) is ForecastState.SHOWN
    assert state_of(a_record(a_wide_forecast(70.1)), Seconds(7 * DAY_S)) is not ForecastState.SHOWN


@pytest.mark.parametrize(
    ("before", "over", "checkpoint"),
    [
        (None, 3, 0.1),
        (0.1, 4, None),
        (None, 15, 0.5),
        (0.1, 14, None),
        (0.5, 30, 0.9),
        (0.9, 28, None),
        (None, 0, None),
    ],
)
def test_the_first_forecast_past_a_checkpoint_will_be_scored(
    before: float | None, over: int, checkpoint: float | None
) -> None:
    counts = BatchCounts(jobs_total=30, jobs_validated=over)

    assert a_record(a_wide_forecast(3.0), checkpoint=before, counts=counts).checkpoint_fraction == checkpoint


def test_fallback_leaves_the_checkpoint_to_the_next_forecast() -> None:
    counts = BatchCounts(jobs_total=30, jobs_validated=15)
    instead = fallback(now=NOW, delay_bound_s=Seconds(DAY_S), previous_at=None, because="no fit")

    assert a_record(instead, checkpoint=0.1, counts=counts).checkpoint_fraction is None


def test_the_spread_and_the_counts_are_those_it_was_made_at() -> None:
    counts = BatchCounts(jobs_total=30, jobs_validated=7, jobs_failed=2)
    made = a_record(a_wide_forecast(3.0), counts=counts, batch_id=BatchId(5))

    assert (made.batch_id, made.spread, made.jobs_total, made.jobs_validated, made.jobs_failed) == (5, 1.25, 30, 7, 2)


def test_a_quorum_is_no_part_of_the_instances_a_job_uses_up() -> None:
    """Of at most three instances two are needed: they raise no flag, the third does."""
    two = a_snapshot([Sent(0, InstanceStanding.IN_PROGRESS, host, 9.0) for host in (1, 2)], quorum=2)
    three = a_snapshot([Sent(0, InstanceStanding.IN_PROGRESS, host, 9.0) for host in (1, 2, 3)], quorum=2)

    flags = [
        recorded(
            a_wide_forecast(3.0), a_standing(a_batch(), limit=1), Trigger.TIMER, most_spent=most_spent_of(each)
        ).flag
        for each in (two, three)
    ]

    assert flags[0] is None and not missing(flags[1] or "", "no retries left")


def test_the_job_with_most_instances_is_an_open_one() -> None:
    done = [Sent(0, InstanceStanding.SUCCESS, host, 9.0, 5.0) for host in (1, 2, 3)]
    open_ = [Sent(1, InstanceStanding.ERROR, 4, 9.0, 5.0), Sent(1, InstanceStanding.IN_PROGRESS, 5, 3.0)]

    assert most_spent_of(a_snapshot([*done, *open_])) == 1
