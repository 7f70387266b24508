"""When a batch is estimated again."""

from __future__ import annotations

from batch_estimator.refit import refit_at, trigger_of
from domain.forecasts import ForecastAge, Trigger
from domain.settings import EstimatorSettings
from domain.units import DAY_S, HOUR_S, MINUTE_S, BatchId, Instant, Seconds
from tests.unit.batch_estimator.snapshots import NOW

SETTINGS = EstimatorSettings()


def an_age(*, left_s: float = HOUR_S, dirty: bool) -> ForecastAge:
    return ForecastAge(BatchId(1), NOW, Instant(NOW + left_s), 5, 6 if dirty else 5)


def due_s(*, left_s: float, dirty: bool, settings: EstimatorSettings = SETTINGS) -> float:
    return refit_at(an_age(left_s=left_s, dirty=dirty), now=NOW, settings=settings) - NOW


def test_a_batch_never_estimated_is_due_at_once() -> None:
    assert refit_at(ForecastAge(BatchId(1), None, None, 0, 0), now=NOW, settings=SETTINGS) == NOW


def test_a_validation_counts_after_a_minute() -> None:
    assert due_s(left_s=HOUR_S, dirty=True) == MINUTE_S


def test_a_batch_with_much_time_left_gathers_validations_for_one_percent_of_it() -> None:
    assert due_s(left_s=10 * HOUR_S, dirty=True) == 360.0


def test_no_batch_waits_longer_than_a_quarter_of_an_hour() -> None:
    assert due_s(left_s=30 * DAY_S, dirty=True) == 15 * MINUTE_S
    assert due_s(left_s=HOUR_S, dirty=False) == 15 * MINUTE_S


def test_a_dirty_batch_whose_estimate_has_passed_waits_a_minute() -> None:
    assert due_s(left_s=-DAY_S, dirty=True) == MINUTE_S


def test_the_pause_and_the_timer_are_settings() -> None:
    quick = EstimatorSettings(pause_s=Seconds(2.0), timer_s=Seconds(7.0))

    assert due_s(left_s=60.0, dirty=True, settings=quick) == 2.0
    assert due_s(left_s=DAY_S, dirty=True, settings=quick) == due_s(left_s=60.0, dirty=False, settings=quick) == 7.0


def test_a_forecast_says_what_it_was_made_by() -> None:
    assert trigger_of(ForecastAge(BatchId(1), None, None, 0, 0)) is Trigger.SUBMISSION
    assert trigger_of(an_age(dirty=True)) is Trigger.VALIDATION
    assert trigger_of(an_age(dirty=False)) is Trigger.TIMER
