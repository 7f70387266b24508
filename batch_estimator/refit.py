"""When is a batch estimated again? Pure. ESTIMATOR 5.10."""

from __future__ import annotations

from domain.units import MINUTE_S, Instant, Seconds

LEAST_PAUSE_S = Seconds(60.0)
REMAINING_FRACTION = 0.01
TIMER_S = Seconds(15 * MINUTE_S)


def pause_s(remaining_s: float) -> Seconds:
    """How long validations are gathered before they make a new estimate: max(60 s, 1 % of the time left).

    >>> pause_s(3600.0), pause_s(10 * 86400.0)
    (60.0, 8640.0)
    """
    return Seconds(max(LEAST_PAUSE_S, REMAINING_FRACTION * remaining_s))


def refit_at(*, fitted_at: Instant | None, completion_at: Instant | None, dirty: bool, now: Instant) -> Instant:
    """The instant from which a batch is due: at once if never fitted, then by validations or the timer.

    `dirty`: something was validated since `fitted_at`. Nothing waits longer than 15 minutes.

    >>> refit_at(fitted_at=Instant(1000.0), completion_at=Instant(21000.0), dirty=True, now=Instant(1100.0))
    1200.0
    >>> refit_at(fitted_at=Instant(1000.0), completion_at=Instant(21000.0), dirty=False, now=Instant(1100.0))
    1900.0
    """
    if fitted_at is None:
        return now
    timer_at = fitted_at + TIMER_S
    if not dirty:
        return Instant(timer_at)
    remaining_s = max(0.0, completion_at - fitted_at) if completion_at is not None else 0.0
    return Instant(min(timer_at, fitted_at + pause_s(remaining_s)))
