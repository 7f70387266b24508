"""Finds the largest number of an app's instances in progress at the same time, from exact and from sampled rows. Pure.

A sampled row represents many instances, so the largest of many noisy counts shows the noise. Therefore the peak is
searched in the means over windows of every length, and each mean of the sample is reduced by the noise that is expected
in the largest of as many windows (docs/decisions/0083-a-move-starts-a-new-rate.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats, Ints

STEPS = 20_000  # instants at which instances in progress are counted, one a minute over 14 days
STARTS = 16  # windows begin every 1/16 of their length


@dataclass(frozen=True, slots=True)
class SampledInstances:
    """Sampled instances, each for `weight` instances. Those with the same number in `page` were chosen together."""

    sent_at: Floats
    ended_at: Floats
    page: Ints
    weight: float


@dataclass(frozen=True, slots=True)
class PeakInProgress:
    """The largest number of instances in progress, and the present one."""

    most: float
    now: float


def in_progress(
    sent_at: Floats, ended_at: Floats, sample: SampledInstances, *, since: float, now: float, lasts_s: float
) -> PeakInProgress:
    """Return the peak between `since` and `now` of all instances sent and of a sample. NaN: not sent, not ended.

    A mean of the sample over a window of length T is reduced by z sd: sd^2 = (1 - 1 / weight) / n with n the pages of
    the instances in it, z^2 = ln((now - since) / (T + lasts_s)). No reduction: the whole time, a weight of 1.

    >>> none = SampledInstances(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 1.0)
    >>> in_progress(np.array([-72.0, -1.0]), np.array([-0.6, np.nan]), none, since=-100.0, now=0.0, lasts_s=9.0)
    PeakInProgress(most=2.0, now=1.0)
    """
    first = min(float(np.nanmin(times, initial=now)) for times in (sent_at, sample.sent_at))
    grid = _Grid(min(max(since, first), now - 1.0), now)
    own = grid.by(sent_at) - grid.by(ended_at)
    _, of, rows = np.unique(sample.page, return_inverse=True, return_counts=True)
    begun, ended = grid.by(sample.sent_at, 1.0 / rows[of]), grid.by(sample.ended_at, 1.0 / rows[of])
    sampled = sample.weight * (grid.by(sample.sent_at) - grid.by(sample.ended_at))
    own_sum, sampled_sum = _running(own), _running(sampled)
    most, length_at_most, length = -1.0, 1, 1
    while True:
        start = np.arange(0, STEPS + 2 - length, max(1, length // STARTS))
        windows = max(1.0, (now - grid.start) / (length * grid.step_s + lasts_s))
        pages = np.maximum(begun[start + length - 1] - ended[start], 1e-9)
        noise = np.sqrt(np.log(windows) * max(0.0, 1.0 - 1.0 / sample.weight) / pages)
        mean = sampled_sum[start + length] - sampled_sum[start]
        found = float(np.max(own_sum[start + length] - own_sum[start] + mean * np.maximum(0.0, 1.0 - noise))) / length
        if found > most:
            most, length_at_most = found, length
        if length > STEPS:
            break
        length = min(2 * length, STEPS + 1)
    return PeakInProgress(most, float(own[-1] + np.mean(sampled[-length_at_most:])))


@dataclass(frozen=True, slots=True)
class _Grid:
    """STEPS + 1 instants from `start` to `now`."""

    start: float
    now: float

    @property
    def step_s(self) -> float:
        return (self.now - self.start) / STEPS

    def by(self, instants: Floats, weight: Floats | None = None) -> Floats:
        """Return, for each instant of the grid, the number or total weight up to and including it."""
        step = np.ceil((np.fmin(instants, self.now + self.step_s) - self.start) / self.step_s - 1e-3)
        number = np.bincount(np.maximum(step, 0.0).astype(np.int64), weight, minlength=STEPS + 2)
        total: Floats = np.cumsum(number[: STEPS + 1]).astype(np.float64)
        return total


def _running(counts: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(counts)])
