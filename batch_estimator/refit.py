"""When is a batch estimated again? Pure. ESTIMATOR 5.10."""

from __future__ import annotations

from domain.forecasts import ForecastAge, Trigger
from domain.settings import EstimatorSettings
from domain.units import Instant, Seconds

REMAINING_FRACTION = 0.01


def pause_s(remaining_s: float, settings: EstimatorSettings) -> Seconds:
    """How long validations are gathered before they make a new estimate: max(`pause_s`, 1 % of the time left).

    >>> pause_s(3600.0, EstimatorSettings()), pause_s(10 * 86400.0, EstimatorSettings())
    (60.0, 8640.0)
    """
    return Seconds(max(settings.pause_s, REMAINING_FRACTION * remaining_s))


def refit_at(age: ForecastAge, *, now: Instant, settings: EstimatorSettings) -> Instant:
    """The instant from which a batch is due: at once if never forecast, then by validations or the timer.

    Nothing waits longer than `timer_s`, 15 minutes.

    >>> after_20_000_s = ForecastAge(1, Instant(1000.0), Instant(21000.0), jobs_over_then=4, jobs_over=5)
    >>> refit_at(after_20_000_s, now=Instant(1100.0), settings=EstimatorSettings())
    1200.0
    >>> nothing_new = ForecastAge(1, Instant(1000.0), Instant(21000.0), jobs_over_then=5, jobs_over=5)
    >>> refit_at(nothing_new, now=Instant(1100.0), settings=EstimatorSettings())
    1900.0
    """
    if age.made_at is None:
        return now
    timer_at = age.made_at + settings.timer_s
    if not age.dirty:
        return Instant(timer_at)
    remaining_s = max(0.0, age.completion_at - age.made_at) if age.completion_at is not None else 0.0
    return Instant(min(timer_at, age.made_at + pause_s(remaining_s, settings)))


def trigger_of(age: ForecastAge) -> Trigger:
    """What a batch that is due was made due by."""
    if age.made_at is None:
        return Trigger.SUBMISSION
    return Trigger.VALIDATION if age.dirty else Trigger.TIMER
