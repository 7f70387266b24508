"""When is a batch estimated again? Pure. ESTIMATOR 5.10."""

from __future__ import annotations

from domain.forecasts import ForecastAge, Trigger
from domain.settings import EstimatorSettings
from domain.units import Instant, later


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
    return later(age.made_at, age.wait_s(settings) if age.dirty else settings.timer_s)


def trigger_of(age: ForecastAge) -> Trigger:
    """What a batch that is due was made due by."""
    if age.made_at is None:
        return Trigger.SUBMISSION
    return Trigger.VALIDATION if age.dirty else Trigger.TIMER
