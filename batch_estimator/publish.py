"""Decides what to publish: completion time, confidence, reason for a change, stored record. Pure. docs/formulas.md.

Submitters see q50 ("about") and q90 ("at the latest") of the latest forecast. Scheduling uses C(B): q90 with a floor,
kept until the error is large enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from batch_estimator.selfcheck import checkpoint_passed
from batch_estimator.snapshot import BatchSnapshot, Floats
from domain.batches import QoS
from domain.forecasts import FAR_BOUNDS, Change, ForecastHold, ForecastRecord, ForecastStanding, Method, Terms, Trigger
from domain.formatting import in_words, percent
from domain.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast: P(complete by q10_at) = 10 %, and so on; ascending, never before the snapshot's `now`.

    `copied`: the batch's tail has begun, and its last jobs are copied.
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
    """P(complete within x seconds from now), on a grid of times."""

    x_s: Floats
    share: Floats

    def within_s(self, share: float) -> float:
        """Return the seconds until P reaches `share`, interpolated linearly; the last grid point if it never does.

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
    """Return a quantile of the remaining time, with its distance in ln from the median stretched: m (r / m)^spread.

    >>> stretched_s(400.0, 100.0, 1.5), stretched_s(25.0, 100.0, 0.5)
    (800.0, 50.0)
    >>> stretched_s(500.0, 100.0, 4.0, most_s=1600.0)  # else 625 times the median
    1600.0
    """
    if remaining_s <= 0.0 or median_s <= 0.0:
        return remaining_s
    return min(most_s, float(median_s * (remaining_s / median_s) ** spread))


def fallback(*, now: Instant, delay_bound_s: Seconds, previous_at: Instant | None, because: str) -> Forecast:
    """Return the forecast used when the model fails. All its quantiles are max(previous q90, now + D).

    >>> fallback(now=Instant(100.0), delay_bound_s=Seconds(50.0), previous_at=Instant(170.0), because="no fit").q90_at
    170.0
    """
    at = Instant(max(now + delay_bound_s, previous_at if previous_at is not None else now))
    return Forecast(now, at, at, at, Method.FALLBACK, because)


HELD_REMAINING_FRACTION = 0.15  # of the remaining time
HELD_BOUND_FRACTION = 0.05  # of the delay bound
FLAG_SPENT_FRACTION = 0.5  # of the number of instances that a job may have beyond its quorum


@dataclass(frozen=True, slots=True)
class Publication:
    """The new C(B), how the old value changed, and why."""

    completion_at: Instant
    change: Change
    because: str


def floor_of(
    *, long_deadline: bool, delay_bound_s: Seconds, last_first_dispatch_at: Instant | None, copied: bool = False
) -> Instant:
    """Return the lower bound of C(B). A long-deadline batch has the bound D + the latest dispatch of a first instance.

    Once the last jobs have copies (`copied`), the batch no longer waits for their instances and there is no bound.

    >>> floor_of(long_deadline=True, delay_bound_s=Seconds(400.0), last_first_dispatch_at=Instant(200.0))
    600.0
    >>> told = dict(long_deadline=True, delay_bound_s=Seconds(400.0), last_first_dispatch_at=Instant(200.0))
    >>> floor_of(**told, copied=True)
    -inf
    """
    if not long_deadline or copied or last_first_dispatch_at is None:
        return Instant(-math.inf)
    return Instant(last_first_dispatch_at + delay_bound_s)


def tolerance_s(remaining_s: float, delay_bound_s: Seconds) -> Seconds:
    """Return the largest change of a forecast for which C(B) is kept, `remaining_s` before C(B)."""
    return Seconds(max(HELD_REMAINING_FRACTION * remaining_s, HELD_BOUND_FRACTION * delay_bound_s))


def publication(
    forecast: Forecast,
    *,
    previous_at: Instant | None,
    long_deadline: bool,
    delay_bound_s: Seconds,
    last_first_dispatch_at: Instant | None,
) -> Publication:
    """Return the new C(B), or the old one if they differ little.

    The old value is kept unless |new - old| > max(15 % of the time until the old value, 5 % of D), it is below the
    lower bound, or it has passed. A changed C(B) affects new instances only; existing due dates stay. A q90 more than
    10 D ahead is not usable: the old value is kept, or replaced by 10 D ahead.

    With ten days left and D a week, a change of less than 1.5 days is not published.

    >>> from domain.forecasts import Method
    >>> nine = Forecast(Instant(0.0), Instant(0.0), Instant(0.0), Instant(9 * 86400.0), Method.WARM, "")
    >>> kept = publication(nine, previous_at=Instant(10 * 86400.0), long_deadline=False,
    ...                    delay_bound_s=Seconds(7 * 86400.0), last_first_dispatch_at=None)
    >>> kept.completion_at, kept.change.value, kept.because
    (864000.0, 'held', '1 d earlier is within the tolerance of 1 d 12 h')
    """
    floor_at = floor_of(
        long_deadline=long_deadline,
        delay_bound_s=delay_bound_s,
        last_first_dispatch_at=last_first_dispatch_at,
        copied=forecast.copied,
    )
    far_at = Instant(forecast.now + FAR_BOUNDS * delay_bound_s)
    if forecast.q90_at > far_at:
        return _far(far_at, floor_at, previous_at, forecast.now)
    new_at = Instant(max(forecast.q90_at, floor_at))
    basis = "D after the last first dispatch" if new_at > forecast.q90_at else f"q90 {forecast.because}"
    if previous_at is None:
        return Publication(new_at, Change.FIRST, f"first estimate: {basis}")
    if previous_at <= forecast.now:
        return Publication(new_at, Change.PASSED, f"the old estimate has passed: {basis}")
    held_s = tolerance_s(previous_at - forecast.now, delay_bound_s)
    moved_s = abs(new_at - previous_at)
    way = f"{in_words(moved_s)} {'later' if new_at > previous_at else 'earlier'}"
    if moved_s <= held_s and previous_at >= floor_at:
        return Publication(previous_at, Change.HELD, f"{way} is within the tolerance of {in_words(held_s)}")
    if moved_s <= held_s:
        return Publication(new_at, Change.MOVED, f"{way}, because the floor has risen: {basis}")
    return Publication(new_at, Change.MOVED, f"{way}, more than the tolerance of {in_words(held_s)}: {basis}")


def _far(far_at: Instant, floor_at: Instant, previous_at: Instant | None, now: Instant) -> Publication:
    """Return the C(B) to publish while q90 is too far ahead: the old value, but at least the lower bound."""
    seen = f"q90 is more than {FAR_BOUNDS:.0f} delay bounds ahead"
    if previous_at is None or previous_at <= now:
        change = Change.FIRST if previous_at is None else Change.PASSED
        return Publication(Instant(max(far_at, floor_at)), change, f"{seen}: these are used instead")
    if previous_at < floor_at:
        return Publication(floor_at, Change.MOVED, f"{seen}: D after the last first dispatch")
    return Publication(previous_at, Change.HELD, f"{seen}: the published value is kept")


def operator_flag(forecast: Forecast, *, delay_bound_s: Seconds, most_spent_fraction: float) -> str | None:
    """Return why an operator should not rely on the forecast, or None.

    `most_spent_fraction` is the fraction of spare instances (beyond the quorum) already used by the open job with the
    most instances. With a quorum of 2 and at most 4 instances, the first two are not spare.

    >>> from domain.forecasts import Method
    >>> far = Forecast(Instant(0.0), Instant(0.0), Instant(0.0), Instant(1200.0), Method.WARM, "")
    >>> operator_flag(far, delay_bound_s=Seconds(100.0), most_spent_fraction=0.2)
    'no end is shown: at the current rate, it is 20 min away (q90), more than 10 delay bounds of 100 s'
    """
    ahead_s = forecast.q90_at - forecast.now
    if ahead_s > FAR_BOUNDS * delay_bound_s:
        bounds = f"more than {FAR_BOUNDS:.0f} delay bounds of {in_words(delay_bound_s)}"
        return f"no end is shown: at the current rate, it is {in_words(ahead_s)} away (q90), {bounds}"
    if most_spent_fraction > FLAG_SPENT_FRACTION:
        if most_spent_fraction >= 1.0:
            return "at least one open job has no retries left: if its last instance fails, the job fails"
        return f"at least one open job has used {percent(most_spent_fraction)} of its retries"
    return None


def recorded(forecast: Forecast, standing: ForecastStanding, trigger: Trigger, *, most_spent: int) -> ForecastRecord:
    """Return the forecast as stored, with the published C(B), warnings, and whether it will be scored.

    `most_spent` belongs to the open job with the most instances beyond its need. The lower bound applies to long
    deadlines.
    """
    batch, counts = standing.batch, standing.batch.counts
    published = publication(
        forecast,
        previous_at=batch.completion_at,
        long_deadline=batch.qos is QoS.LONG_DEADLINE,
        delay_bound_s=standing.delay_bound_s,
        last_first_dispatch_at=batch.last_first_dispatch_at,
    )
    return ForecastRecord(
        batch.batch_id,
        forecast.now,
        trigger,
        forecast.q10_at,
        forecast.q50_at,
        forecast.q90_at,
        forecast.method,
        forecast.because,
        standing.spread,
        published.completion_at,
        published.change,
        published.because,
        counts.jobs_total,
        counts.jobs_validated,
        counts.jobs_failed,
        checkpoint_fraction=_checkpoint(forecast, standing),
        flag=_flag(forecast, standing, most_spent),
        terms=forecast.terms,
        holds=forecast.holds,
    )


def most_spent_of(snapshot: BatchSnapshot) -> int:
    """Return the maximum, over open jobs, of instances beyond the successes a job needs; 0 if no job is open.

    Instances before a job's latest retry do not count, nor do cancelled ones, which the snapshot omits.
    """
    jobs = snapshot.jobs
    spent = np.bincount(snapshot.instances.job, minlength=len(jobs.is_open)) - jobs.uncounted - jobs.needed
    return int(spent[jobs.is_open].max(initial=0))


def _checkpoint(forecast: Forecast, standing: ForecastStanding) -> float | None:
    """Return the checkpoint passed, or None. A fallback is not scored; the model's next forecast is scored instead."""
    if forecast.method is Method.FALLBACK:
        return None
    jobs_total = standing.batch.counts.jobs_total
    return checkpoint_passed(standing.checkpoint_fraction, standing.age.jobs_over, jobs_total=jobs_total)


def _flag(forecast: Forecast, standing: ForecastStanding, most_spent: int) -> str | None:
    if forecast.method is Method.FALLBACK:
        return f"no forecast: {forecast.because}"
    spent_fraction = most_spent / max(1, standing.least_spare_instances)
    return operator_flag(forecast, delay_bound_s=standing.delay_bound_s, most_spent_fraction=spent_fraction)
