"""Draws the times at which a host is on: an alternating renewal process, limited to its owner's days and hours.

The process starts in equilibrium: the first interval is drawn length-biased (density x f(x) / mean) and entered at a
uniform position, so that the fraction of hosts that are on is the same from the first second to the last. If an owner
uses the host at certain hours only, it is on in the intersection of the process and those hours. Intervals are drawn as
far ahead as needed, from the host's own generator, so they do not depend on the host's work.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.units import DAY_S, HOUR_S, Instant, Seconds


class Law(Protocol):
    """A distribution of positive durations."""

    @property
    def mean_s(self) -> float: ...

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]: ...

    def length_biased_s(self, rng: np.random.Generator) -> float: ...

    def scaled(self, factor: float) -> Law:
        """Return the same distribution with durations `factor` times as long."""
        ...


@dataclass(frozen=True, slots=True)
class Weibull:
    """P(X > x) = exp(-(x / scale)^shape); shape 1 is the exponential distribution.

    >>> Weibull(1.0, 3600.0).mean_s, round(Weibull(0.5, 3600.0).mean_s)
    (3600.0, 7200)
    """

    shape: float
    scale_s: float

    @property
    def mean_s(self) -> float:
        return float(self.scale_s * math.gamma(1.0 + 1.0 / self.shape))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return self.scale_s * rng.weibull(self.shape, count)

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """Draw a length-biased duration, for which (X / scale)^shape is Gamma(1 + 1 / shape)."""
        return float(self.scale_s * rng.gamma(1.0 + 1.0 / self.shape) ** (1.0 / self.shape))

    def scaled(self, factor: float) -> Weibull:
        return Weibull(self.shape, self.scale_s * factor)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """ln X is normal; `median_s` = exp of its mean.

    >>> round(LogNormal(3600.0, 1.0).mean_s)
    5935
    """

    median_s: float
    sigma: float

    @property
    def mean_s(self) -> float:
        return self.median_s * math.exp(0.5 * self.sigma**2)

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return rng.lognormal(math.log(self.median_s), self.sigma, count)

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """Draw a length-biased duration, which is log-normal with the median multiplied by exp(sigma^2)."""
        return float(rng.lognormal(math.log(self.median_s) + self.sigma**2, self.sigma))

    def scaled(self, factor: float) -> LogNormal:
        return LogNormal(self.median_s * factor, self.sigma)


@dataclass(frozen=True, slots=True)
class HyperExponential:
    """A mixture of exponential distributions: mean `means_s[i]` with probability `fractions[i]`.

    >>> HyperExponential((0.5, 0.5), (60.0, 180.0)).mean_s
    120.0
    """

    fractions: tuple[float, ...]
    means_s: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        return sum(p * mean_s for p, mean_s in zip(self.fractions, self.means_s, strict=True))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        means_s: NDArray[np.float64] = rng.choice(np.array(self.means_s), count, p=np.array(self.fractions))
        return rng.exponential(1.0, count) * means_s

    def length_biased_s(self, rng: np.random.Generator) -> float:
        """Draw a length-biased duration: Gamma(2) from branch i, with probability proportional to p_i mean_i."""
        weights = np.array(self.fractions) * np.array(self.means_s)
        branch = rng.choice(len(weights), p=weights / weights.sum())
        return self.means_s[branch] * float(rng.gamma(2.0))

    def scaled(self, factor: float) -> HyperExponential:
        return HyperExponential(self.fractions, tuple(mean_s * factor for mean_s in self.means_s))


CYCLES = 16  # on/off cycles drawn at a time
MONDAY_DAYS = 3  # 1 January 1970 was a Thursday: day 4 was the first Monday
WEEKEND = (5, 6)  # counted from Monday, 0

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class OnOff:
    """The distributions of on and off intervals. Without one for `off`, the host is always on.

    >>> from simulator.availability import Weibull
    >>> OnOff(Weibull(1.0, 3600.0), Weibull(1.0, 1800.0)).fraction
    0.6666666666666666
    """

    on: Law | None = None
    off: Law | None = None

    @property
    def fraction(self) -> float:
        """Return the fraction of time in which the host is on."""
        if self.on is None or self.off is None:
            return 1.0
        return self.on.mean_s / (self.on.mean_s + self.off.mean_s)


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours of the day, in local time, during which an owner has the host on, and how regular they are.

    `weekend_hours` 0: off at weekends. Start times vary from day to day by a normal distribution of `sd_hours`.
    """

    from_hour: float
    hours: float
    weekend_hours: float
    sd_hours: float = 0.5

    @property
    def fraction(self) -> float:
        """Return the fraction of a week covered by these hours.

        >>> round(Hours(8.0, 12.0, 0.0).fraction, 4)
        0.3571
        """
        return (5.0 * min(24.0, self.hours) + 2.0 * min(24.0, self.weekend_hours)) / 168.0


class Availability:
    """The intervals in which one host is on, from `start_at` to `end_at`. They may be queried in any order.

    `worked_s` and `when` are inverses of each other; both count time only while the host is on.
    """

    def __init__(self, intervals: Iterator[Interval], *, start_at: Instant, end_at: float = math.inf) -> None:
        self._source = intervals
        self._end_at = end_at
        self._on = array("d")
        self._off = array("d")
        self._before_s = array("d")  # on time before each interval, in seconds
        self._total_s = 0.0
        self._known_until = start_at
        self._exhausted = False

    def on_from(self, at: float) -> float:
        """Return the first instant at or after `at` at which the host is on, math.inf if it is never on again."""
        if self._known_until <= at:
            self._know(at)
        i = bisect_right(self._off, at)
        while i >= len(self._off):
            if self._exhausted:
                return math.inf
            self._more()
        on_at = self._on[i]
        return at if at > on_at else on_at

    def on_since(self, at: float) -> float:
        """Return when the host was last switched on. It must be on at `at`."""
        return self._on[bisect_right(self._on, at) - 1]

    def worked_s(self, at: float) -> float:
        """Return for how many seconds the host was on before `at`."""
        if self._known_until <= at:
            self._know(at)
        i = bisect_right(self._on, at) - 1
        if i < 0:
            return 0.0
        off_at = self._off[i]
        return self._before_s[i] + (at if at < off_at else off_at) - self._on[i]

    def worked_by_s(self, instants: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `worked_s` for each of many instants."""
        self._know(float(instants.max()))
        if not self._on:
            return np.zeros(len(instants))
        on, off = np.array(self._on), np.array(self._off)
        before_s = np.array(self._before_s)
        known_s = np.column_stack((before_s, before_s + off - on)).ravel()
        return np.asarray(np.interp(instants, np.column_stack((on, off)).ravel(), known_s))

    def when(self, worked_s: float) -> float:
        """Return the instant by which the host has been on for `worked_s` seconds, math.inf if there is none."""
        while self._total_s < worked_s:
            if self._exhausted:
                return math.inf
            self._more()
        i = bisect_left(self._before_s, worked_s) - 1
        return self._on[max(i, 0)] + worked_s - self._before_s[max(i, 0)] if self._on else math.inf

    def _know(self, at: float) -> None:
        while self._known_until <= at and not self._exhausted:
            self._more()

    def _more(self) -> None:
        """Read one more interval, or record that none are left."""
        entry = next(self._source, None)
        if entry is None or entry[0] >= self._end_at:
            self._exhausted = True
            return
        on_at, off_at = entry[0], min(entry[1], self._end_at)
        self._on.append(on_at)
        self._off.append(off_at)
        self._before_s.append(self._total_s)
        self._total_s += off_at - on_at
        self._known_until = Instant(off_at)


def intervals_of(
    process: OnOff, hours: Hours | None, *, seed: np.random.SeedSequence, start_at: Instant, timezone_s: float = 0.0
) -> Iterator[Interval]:
    """Yield an infinite series of the intervals in which one host is on, beginning at `start_at`."""
    renewal, days = seed.spawn(2)
    on = _renewal(process, np.random.Generator(np.random.PCG64(renewal)), start_at)
    if hours is None:
        return on
    return _both(on, _hours(hours, np.random.Generator(np.random.PCG64(days)), start_at, timezone_s))


def _renewal(process: OnOff, rng: np.random.Generator, start_at: float) -> Iterator[Interval]:
    on, off = process.on, process.off
    if on is None or off is None:
        return iter(_days_on(start_at))
    return _alternating(on, off, rng, start_at, process.fraction)


def _days_on(start_at: float) -> Iterator[Interval]:
    """Yield adjoining intervals of one week each, for a host that is always on."""
    at = start_at
    while True:
        yield at, at + 7 * DAY_S
        at += 7 * DAY_S


def _alternating(on: Law, off: Law, rng: np.random.Generator, start_at: float, fraction: float) -> Iterator[Interval]:
    at = start_at
    if rng.random() < fraction:
        until = at + on.length_biased_s(rng) * rng.random()
        yield at, until
        at = until + float(off.draw(rng, 1)[0])
    else:
        at += off.length_biased_s(rng) * rng.random()
    while True:
        for on_s, off_s in zip(on.draw(rng, CYCLES).tolist(), off.draw(rng, CYCLES).tolist(), strict=True):
            yield at, at + on_s
            at += on_s + off_s


def _hours(hours: Hours, rng: np.random.Generator, start_at: float, timezone_s: float) -> Iterator[Interval]:
    """Yield at most one interval per day, starting the day before `start_at`. Adjoining intervals are merged."""
    return _merged(_of_days(hours, rng, start_at, timezone_s), start_at)


def _of_days(hours: Hours, rng: np.random.Generator, start_at: float, timezone_s: float) -> Iterator[Interval]:
    day = math.floor((start_at + timezone_s) / DAY_S) - 1
    while True:
        for shift in rng.normal(0.0, hours.sd_hours, 7).tolist():
            length = hours.weekend_hours if (day + MONDAY_DAYS) % 7 in WEEKEND else hours.hours
            from_at = day * DAY_S - timezone_s + (hours.from_hour + shift) * HOUR_S
            if length > 0.0:
                yield from_at, from_at + min(24.0, length) * HOUR_S
            day += 1


def _merged(intervals: Iterator[Interval], start_at: float) -> Iterator[Interval]:
    current: Interval | None = None
    for from_at, until in intervals:
        if until <= start_at:
            continue
        if current is not None and from_at <= current[1]:
            if current[1] - current[0] > 7 * DAY_S:  # on day and night: yield it week by week
                yield current
                current = (current[1], max(current[1], until))
                continue
            current = (current[0], max(current[1], until))
            continue
        if current is not None:
            yield current
        current = (max(from_at, start_at), until)


def _both(first: Iterator[Interval], second: Iterator[Interval]) -> Iterator[Interval]:
    """Yield the intersection of two infinite series of intervals, each in order and without overlaps."""
    a, b = next(first), next(second)
    while True:
        from_at, until = max(a[0], b[0]), min(a[1], b[1])
        if from_at < until:
            yield from_at, until
        if a[1] <= b[1]:
            a = next(first)
        else:
            b = next(second)


def measured_fraction(known: float, on_s: float, passed_s: float, *, memory_s: Seconds) -> float:
    """Return the client's on fraction, an exponential average, after `passed_s` more seconds, `on_s` of them on.

    >>> measured_fraction(1.0, 0.0, 10 * 86400.0, memory_s=Seconds(10 * 86400.0)) == math.exp(-1)
    True
    """
    if passed_s <= 0.0:
        return known
    kept = math.exp(-passed_s / memory_s)
    return known * kept + (1.0 - kept) * on_s / passed_s
