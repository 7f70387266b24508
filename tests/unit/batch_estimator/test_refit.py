"""When a batch is estimated again."""

from __future__ import annotations

from batch_estimator.refit import refit_at
from domain.units import DAY_S, HOUR_S, MINUTE_S, Instant
from tests.unit.batch_estimator.snapshots import NOW


def due_s(*, left_s: float, dirty: bool) -> float:
    return refit_at(fitted_at=NOW, completion_at=Instant(NOW + left_s), dirty=dirty, now=NOW) - NOW


def test_a_batch_never_estimated_is_due_at_once() -> None:
    assert refit_at(fitted_at=None, completion_at=None, dirty=False, now=NOW) == NOW


def test_a_validation_counts_after_a_minute() -> None:
    assert due_s(left_s=HOUR_S, dirty=True) == MINUTE_S


def test_a_batch_with_much_time_left_gathers_validations_for_one_percent_of_it() -> None:
    assert due_s(left_s=10 * HOUR_S, dirty=True) == 360.0


def test_no_batch_waits_longer_than_a_quarter_of_an_hour() -> None:
    assert due_s(left_s=30 * DAY_S, dirty=True) == 15 * MINUTE_S
    assert due_s(left_s=HOUR_S, dirty=False) == 15 * MINUTE_S


def test_a_dirty_batch_whose_estimate_has_passed_waits_a_minute() -> None:
    assert due_s(left_s=-DAY_S, dirty=True) == MINUTE_S
