"""Were batches over when it had been said that they would be, and how wide of it? By C(B) at half of their jobs. Pure.

C(B) is the q90 of the forecast (batch_estimator): nine of ten batches should be over by then. All of them being over
by then says nothing of how much later C(B) was, so that is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from domain.units import Instant
from simulator.recording import Followed, PublishedForecast

PROGRESS_PERCENT = (0, 10, 25, 50, 75, 90, 99)

ByProgress = Mapping[str, float]


def coverage_fraction(batches: Iterable[Followed], ended_at: Instant) -> float | None:
    """The batches that were over by C(B), of those of which that is known; None where it is of none.

    A batch that was not over when the simulation ended, at `ended_at`, is late where C(B) was before; else nobody
    knows.
    """
    kept = [known for known in (_kept(batch, ended_at) for batch in batches) if known is not None]
    return sum(kept) / len(kept) if kept else None


def _kept(batch: Followed, ended_at: Instant) -> bool | None:
    return None if batch.promised_at is None else _covers(batch, batch.promised_at, ended_at)


def promise_ratio(batches: Iterable[Followed]) -> float | None:
    """Promised over true time from half of the jobs to the last, the median of batches that are over.

    >>> from array import array
    >>> from domain.batches import QoS
    >>> batch = Followed(1, "b", QoS.AFAP, "ada", Instant(0.0), 4, ended_at=array("d", [10.0, 20.0, 30.0, 40.0]))
    >>> batch.promised_at = Instant(80.0)
    >>> promise_ratio([batch])
    3.0
    """
    found = []
    for batch in batches:
        if batch.promised_at is None or not batch.is_over:
            continue
        ends = sorted(batch.ended_at)
        half_at = ends[(batch.jobs + 1) // 2 - 1]
        if ends[-1] > half_at:
            found.append((batch.promised_at - half_at) / (ends[-1] - half_at))
    return median(found) if found else None


@dataclass(frozen=True, slots=True)
class ForecastQuality:
    """By progress in percent of a batch's jobs, of those batches that had a forecast then.

    `error` is |q50 - end| / (end - now) and `ratio` (q50 - now) / (end - now), medians over batches that are over;
    coverages are the fractions of batches that ended by the quantile.
    """

    error: ByProgress
    ratio: ByProgress
    q10_coverage: ByProgress
    q50_coverage: ByProgress
    q90_coverage: ByProgress


def forecast_quality(batches: Iterable[Followed], ended_at: Instant) -> ForecastQuality:
    """The forecasts that submitters saw at each progress; at 0 the first of all, if it came before the next.

    A batch that was not over at `ended_at` counts in coverages where a quantile lay before that.
    """
    error: dict[str, float] = {}
    ratio: dict[str, float] = {}
    coverages: tuple[dict[str, float], ...] = ({}, {}, {})
    every = list(batches)
    for percent in PROGRESS_PERCENT:
        seen = [(batch, *shown) for batch in every if (shown := _shown_at(batch, percent)) is not None]
        ratios = [_ratio(batch, now, shown) for batch, now, shown in seen if batch.is_over]
        left = [one for one in ratios if one is not None]
        if left:
            ratio[str(percent)] = median(left)
            error[str(percent)] = median(abs(one - 1.0) for one in left)
        quantiles = [(batch, (shown.q10_at, shown.q50_at, shown.q90_at)) for batch, _, shown in seen]
        for place, coverage in enumerate(coverages):
            known = [_covers(batch, of_batch[place], ended_at) for batch, of_batch in quantiles]
            kept = [one for one in known if one is not None]
            if kept:
                coverage[str(percent)] = fmean(kept)
    return ForecastQuality(error, ratio, *coverages)


def _shown_at(batch: Followed, percent: int) -> tuple[Instant, PublishedForecast] | None:
    """When the batch was as far as that, and the forecast that was shown then."""
    ends = sorted(batch.ended_at)
    if percent == 0:
        first = next((shown for _, shown in batch.forecasts if shown is not None), None)
        jobs = max(1, math.ceil(batch.jobs * PROGRESS_PERCENT[1] / 100))
        is_early = first is not None and (len(ends) < jobs or first.made_at < ends[jobs - 1])
        return (first.made_at, first) if first is not None and is_early else None
    jobs = max(1, math.ceil(batch.jobs * percent / 100))
    if len(ends) < jobs:
        return None
    now = Instant(ends[jobs - 1])
    shown = next((shown for made_at, shown in reversed(batch.forecasts) if made_at <= now), None)
    return (now, shown) if shown is not None else None


def _ratio(batch: Followed, now: Instant, shown: PublishedForecast) -> float | None:
    """None: nothing was left."""
    left_s = max(batch.ended_at) - now
    return (shown.q50_at - now) / left_s if left_s > 0.0 else None


def _covers(batch: Followed, quantile_at: Instant, ended_at: Instant) -> bool | None:
    if batch.is_over:
        return max(batch.ended_at) <= quantile_at
    return False if quantile_at < ended_at else None
