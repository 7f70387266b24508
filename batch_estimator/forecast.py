"""What a forecast says: when, how sure, and what holds the batch. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats
from domain.forecasts import ForecastHold, Method, Terms
from domain.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Forecast:
    """P(complete by q10_at) = 10 %, and so on; ascending, never before the snapshot's `now`.

    `copied`: the tail of the batch has begun, its last jobs are copied.
    """

    now: Instant
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant
    method: Method
    because: str
    terms: Terms | None = None
    holds: tuple[ForecastHold, ...] = ()
    copied: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CompletionLaw:
    """P(complete within x seconds from now), on a grid."""

    x_s: Floats
    share: Floats

    def within_s(self, share: float) -> float:
        """Seconds until P reaches `share`, linear between grid points; the last of them if it never does.

        >>> CompletionLaw(np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.4, 0.8])).within_s(0.5)
        12.5
        """
        position = int(np.searchsorted(self.share, share))
        if position == 0:
            return 0.0
        if position == len(self.share):
            return float(self.x_s[-1])
        low, high = self.share[position - 1], self.share[position]
        step = self.x_s[position] - self.x_s[position - 1]
        return float(self.x_s[position - 1] + (share - low) / (high - low) * step)


def stretched_s(remaining_s: float, median_s: float, spread: float, *, most_s: float = math.inf) -> float:
    """A quantile of the remaining time with its ln stretched about the median's: m (r / m)^spread, `most_s` at most.

    >>> stretched_s(400.0, 100.0, 1.5), stretched_s(25.0, 100.0, 0.5)
    (800.0, 50.0)
    >>> stretched_s(500.0, 100.0, 4.0, most_s=1600.0)  # else 625 times the median
    1600.0
    """
    if remaining_s <= 0.0 or median_s <= 0.0:
        return remaining_s
    return min(most_s, float(median_s * (remaining_s / median_s) ** spread))


def fallback(*, now: Instant, delay_bound_s: Seconds, previous_at: Instant | None, because: str) -> Forecast:
    """What stands in when the model gives no answer: max(previous q90, now + D) for every quantile.

    >>> fallback(now=Instant(100.0), delay_bound_s=Seconds(50.0), previous_at=Instant(170.0), because="no fit").q90_at
    170.0
    """
    at = Instant(max(now + delay_bound_s, previous_at if previous_at is not None else now))
    return Forecast(now, at, at, at, Method.FALLBACK, because)
