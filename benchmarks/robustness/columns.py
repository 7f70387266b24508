"""Defines the table's columns: their figures for one population and seed, and which value is the worst. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from domain.batches import QoS
from simulator.metrics import Figure, Figures

PROGRESS = (10, 25, 50, 75, 90)  # percent of a batch's jobs
LOW_LOSS, LOW_LOSS_ALLOWANCE, MORE_ALLOWANCE = 0.05, 1.25, 0.2


@dataclass(frozen=True, slots=True)
class Value:
    """A cell. `more` (`less`): the true value is larger (smaller), because of an unfinished batch."""

    value: float
    more: bool = False
    less: bool = False

    def __str__(self) -> str:
        """
        >>> str(Value(0.5)), str(Value(0.5, more=True))
        ('0.50', '> 0.50')
        """
        return f"{'> ' if self.more else '< ' if self.less else ''}{self.value:.2f}"


def median_of(values: Iterable[Value]) -> Value | None:
    """Return the median, ranking `more` above and `less` below all other values.

    >>> str(median_of([Value(1.0), Value(0.2, more=True), Value(3.0)])), median_of([])
    ('3.00', None)
    >>> str(median_of([Value(1.0), Value(2.0, more=True)]))
    '> 1.50'
    """
    ordered = sorted(values, key=_rank)
    if not ordered:
        return None
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    more, less = any(one.more for one in middle), any(one.less for one in middle)
    return Value(fmean(one.value for one in middle), more, less and not more)


def _rank(one: Value) -> tuple[float, float]:
    return (math.inf if one.more else -math.inf if one.less else one.value), one.value


def mean_of(values: Iterable[Value]) -> Value | None:
    """
    >>> mean_of([Value(1.0), Value(0.5)])
    Value(value=0.75, more=False, less=False)
    """
    known = [one.value for one in values]
    return Value(fmean(known)) if known else None


@dataclass(frozen=True, slots=True)
class Measured:
    """A contestant's run, and those of `accelerated` and the bound for the same population and seed."""

    ours: Figures
    accelerated: Figures
    bound: Figures
    loss_fraction: float
    error_fraction: float


Badness = Callable[[float], float]  # larger is worse


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `wanted` is the goal for the middle, with the goal for the worst population in brackets.

    `middle` summarizes first seeds, then populations: by the median, or for coverages, which are coarse, by the mean.
    """

    key: str
    title: str
    wanted: str
    of: Callable[[Measured], Value | None]
    badness: Badness
    middle: Callable[[Iterable[Value]], Value | None]


def high(value: float) -> float:
    return value


def low(value: float) -> float:
    return -value


def _away_from(goal: float, value: float) -> float:
    return abs(value - goal)


def _times_off(value: float) -> float:
    return abs(math.log(max(value, 1e-6)))


# ------------------------------------------------------------ what is measured


def makespan_ratio(qos: QoS, one: Measured) -> Value | None:
    """Return the makespan over that of `accelerated`, None if both are unfinished or there is no such batch."""
    return _over(one.ours, one.accelerated, qos)


def over_bound(one: Measured) -> Value | None:
    return _over(one.ours, one.bound, QoS.AFAP)


def _over(ours: Figures, theirs: Figures, qos: QoS) -> Value | None:
    value, base = ours.makespan(qos), theirs.makespan(qos)
    more, less = qos in ours.cut_short, qos in theirs.cut_short
    if value is None or not base or (more and less):
        return None
    return Value(value / base, more, less)


def allowance(loss_fraction: float, error_fraction: float) -> float:
    """Return the acceptable number of instances per job.

    >>> allowance(0.05, 0.1), round(allowance(0.2, 0.05), 3)
    (1.25, 1.533)
    """
    if loss_fraction <= LOW_LOSS:
        return LOW_LOSS_ALLOWANCE
    return 1.0 / (1.0 - loss_fraction - error_fraction) + MORE_ALLOWANCE


def instances(one: Measured) -> Value | None:
    value = one.ours.instances_per_job
    return None if value is None else Value(value / allowance(one.loss_fraction, one.error_fraction))


def share_of(name: str, one: Measured) -> Value | None:
    """Return the ratio of a figure to that of `accelerated`."""
    value, base = getattr(one.ours, name), getattr(one.accelerated, name)
    return None if value is None or not base else Value(value / base)


def by_progress(name: str, percents: Sequence[int], one: Measured) -> Value | None:
    """Return the mean over `percents` of a table by progress, without unknown values."""
    table = getattr(one.ours, name) or {}
    known = [value for percent in percents if (value := table.get(str(percent))) is not None]
    return Value(fmean(known)) if known else None


def plain(name: str, one: Measured) -> Value | None:
    value: Figure = getattr(one.ours, name)
    return None if value is None else Value(value)


def _makespan(key: str, title: str, qos: QoS, wanted: str) -> Column:
    return Column(key, f"{title} makespan / accelerated", wanted, partial(makespan_ratio, qos), high, median_of)


def _share(key: str, title: str, wanted: str) -> Column:
    return Column(key, f"{title} / accelerated", wanted, partial(share_of, key), low, median_of)


def _forecast(key: str, title: str, wanted: str, name: str, percents: Sequence[int], badness: Badness = high) -> Column:
    return Column(key, title, wanted, partial(by_progress, name, percents), badness, median_of)


def _coverage(percent: int, wanted: str) -> Column:
    of = partial(by_progress, f"forecast_q{percent}_coverage", PROGRESS)
    badness = partial(_away_from, percent / 100.0)
    return Column(f"q{percent}_coverage", f"coverage of q{percent} (mean)", wanted, of, badness, mean_of)


def _plain(key: str, title: str, wanted: str, badness: Badness = high) -> Column:
    return Column(key, title, wanted, partial(plain, key), badness, median_of)


COLUMNS: Sequence[Column] = (
    _makespan("afap", "AFAP", QoS.AFAP, "0.50 (0.80)"),
    _makespan("long_deadline", "long-deadline", QoS.LONG_DEADLINE, "1.00 (1.10)"),
    _makespan("throughput", "throughput", QoS.THROUGHPUT, "1.00 (1.10)"),
    _makespan("short_deadline", "deadline-batch", QoS.SHORT_DEADLINE, "1.00 (1.10)"),
    _share("saturated_jobs_per_day", "jobs per day under saturation", "1.00 (0.97)"),
    _share("use_fraction", "processor utilization while work waits", "1.00 (0.97)"),
    Column("instances", "instances per job / allowance", "1.00 (1.00)", instances, high, median_of),
    _plain("deadline_mode_fraction", "share of jobs run in deadline mode", "0.10 (0.10)"),
    *(
        _forecast(
            f"error_{percent}", f"forecast error of q50 at {percent} %", "0.30 (0.60)", "forecast_error", [percent]
        )
        for percent in PROGRESS
    ),
    _coverage(50, "0.40 to 0.60"),
    _coverage(90, "0.82 to 0.96"),
    _forecast("first_forecast", "first forecast, q50 / truth", "0.5 to 2", "forecast_ratio", [0], _times_off),
    Column("bound", "AFAP makespan / clairvoyant bound", "2.50", over_bound, high, median_of),
    _plain("batches_unfinished", "unfinished batches", "0"),
    _plain("refused_feasible_fraction", "refused despite a feasible job", ""),
)


# ------------------------------------------------------------ medians and worst cases


@dataclass(frozen=True, slots=True)
class Summary:
    """A contestant's column: the middle over populations, and the worst population."""

    middle: Value
    worst: Value
    worst_population: int
    populations: int


def summary_of(column: Column, by_population: Mapping[int, Value | None]) -> Summary | None:
    """Summarize the column. Return None if no population has a value."""
    known = {number: value for number, value in by_population.items() if value is not None}
    middle = column.middle(known.values())
    if middle is None:
        return None
    worst = max(known, key=lambda number: (known[number].more, column.badness(known[number].value)))
    return Summary(middle, known[worst], worst, len(known))
