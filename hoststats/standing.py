"""Computes percentiles and request rates for many hosts with the current cut points. Pure.

The same rule as domain.ranking.percentile, on whole arrays: `muster thresholds preview` counts hosts with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from domain.hosts import STATS_HALF_LIFE_S
from domain.ranking import FORGIVEN, FORGIVEN_VALID, CutPoints
from domain.settings import RankingSettings
from domain.units import HOUR_S, Instant, Seconds
from hoststats.apps import quantiles
from hoststats.ports import Table
from hoststats.ranking import (
    Counts,
    Flags,
    Floats,
    Record,
    bootstrap,
    mean_score,
    rank,
    ranks_among,
    turnaround_scores,
    valid_ranks,
)


class Percentiles(NamedTuple):
    """P of each record, and X, its rank by turnaround alone; NaN for newcomers. In a small population X is P."""

    p: Floats
    x: Floats


def percentiles(table: Table, cuts: CutPoints | None, *, now: Instant, settings: RankingSettings) -> Percentiles:
    """Return domain.ranking.percentile for each record (STANDING_FIELDS).

    Two hosts with 10 results each; the first is at the population's median, and its last results are valid:

    >>> from domain.insight import STANDING_FIELDS
    >>> first = (1, 1, 1, 11, False, 0.0, 10.0, 20.0, 0.0, 0.0, 0.0, 1.0)
    >>> rows = [first, (2, 1, 1, 0, True, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)]
    >>> cuts = CutPoints(1, "cpu", 0.0, 40, (1.0, 2.0, 3.0), (20,) + (0,) * 10, score_mean=2.0)
    >>> table = np.array(rows, list(STANDING_FIELDS))
    >>> percentiles(table, cuts, now=Instant(0.0), settings=RankingSettings()).p.tolist()
    [0.5, nan]
    """
    record, enough = _record(table, now, settings)
    scores = turnaround_scores(record, score_mean=cuts.score_mean if cuts else 0.0)
    x = 1.0 - ranks_among(np.array(cuts.turnaround if cuts else ()), scores)
    if cuts is None or not cuts.turnaround:
        x[:] = 0.5
    x[~enough] = np.nan
    if cuts is None or cuts.n < settings.min_rows:
        p = bootstrap(x, failed=table["failed"])
        return Percentiles(p, p)
    y = valid_ranks(np.array(cuts.consecutive_valid, np.int64), cuts.n, _valid_in_a_row(table, now, settings))
    return Percentiles(np.minimum(x, y), x)


def _record(table: Table, now: Instant, settings: RankingSettings) -> tuple[Record, Flags]:
    """Return the inputs of the scores as of now, and which rows have enough samples for a rank."""
    kept = np.exp2(-np.maximum(0.0, now - table["stats_at"]) / STATS_HALF_LIFE_S)
    record = Record(*(table[name] * kept for name in ("relaxed_n", "relaxed_sum", "tight_n", "tight_missed_n")))
    return record, record.relaxed_n + record.tight_n >= settings.min_samples


def reranked(table: Table, cuts: CutPoints, one_in: int, *, now: Instant, settings: RankingSettings) -> CutPoints:
    """Return the cut points that the next ranking of these rows would compute; each row stands for `one_in`.

    >>> from domain.insight import STANDING_FIELDS
    >>> rows = [(1, 1, 1, 11, False, 0.0, 10.0, 20.0, 0.0, 0.0, 0.0, 1.0)]
    >>> table, cuts = np.array(rows, list(STANDING_FIELDS)), CutPoints(1, "cpu", 0.0, 40, (1.0,), (20,))
    >>> [reranked(table, cuts, 1, now=Instant(0.0), settings=RankingSettings(min_samples=n)).n for n in (3, 100)]
    [1, 0]
    """
    record, enough = _record(table, now, settings)
    used: Flags = table["stats_at"] > now - settings.used_s
    counted = enough & used
    score_mean = mean_score(record.relaxed_n[counted], record.relaxed_sum[counted])
    found = rank(
        turnaround_scores(record, score_mean=score_mean),
        _valid_in_a_row(table, now, settings),
        active=used,
        enough=enough,
        failed=table["failed"],
        settings=settings,
    )
    in_a_row = tuple((found.in_a_row * one_in).tolist())
    return replace(
        cuts,
        n=found.n * one_in,
        turnaround=quantiles(found.ordered),
        consecutive_valid=in_a_row,
        score_mean=score_mean,
    )


def _valid_in_a_row(table: Table, now: Instant, settings: RankingSettings) -> Counts:
    """Return domain.ranking.valid_in_a_row for each record."""
    counted: Counts = table["consecutive_valid"]
    if settings.forgive_s <= 0:
        return counted
    forgiven = (counted >= FORGIVEN_VALID) & (now - table["clean_since_at"] >= settings.forgive_s)
    return np.where(forgiven, np.int32(FORGIVEN), counted)


def opens(p: Floats, threshold: float, *, strict: bool) -> Flags:
    """Return which percentiles pass a gate: P >= threshold, or P > threshold if `strict`. NaN never passes.

    >>> opens(np.array([0.4, 0.5, np.nan]), 0.5, strict=False).tolist()
    [False, True, False]
    """
    passed: Flags = p > threshold if strict else p >= threshold
    return passed


@dataclass(frozen=True, slots=True)
class Passing:
    """Rows that pass a gate, the number of their hosts and volunteers, and the requests per hour of these hosts."""

    rows: int = 0
    calls_per_hour: float = 0.0
    hosts: int = 0
    volunteers: int = 0


def passing(parts: Iterable[tuple[Table, Flags]]) -> Passing:
    """Return the passing rows of all tables together. A host in several tables counts once.

    >>> fields = [("host_id", "i4"), ("volunteer_id", "i4"), ("calls_per_hour", "f8")]
    >>> table = np.array([(1, 7, 2.0), (2, 7, 3.0)], fields)
    >>> passing([(table, np.array([True, True])), (table, np.array([True, False]))])
    Passing(rows=3, calls_per_hour=5.0, hosts=2, volunteers=1)
    """
    fields = ["host_id", "volunteer_id", "calls_per_hour"]
    chosen = [table[fields][passed] for table, passed in parts]
    if not chosen:
        return Passing()
    rows = np.concatenate(chosen)
    _, first = np.unique(rows["host_id"], return_index=True)
    calls = float(np.sum(rows["calls_per_hour"][first]))
    return Passing(int(rows.size), calls, first.size, np.unique(rows["volunteer_id"]).size)


def time_to_send_s(jobs: int, calls_per_hour: float) -> Seconds | None:
    """Return how long sending these jobs takes at one job per request, jobs / rate (decision 12); None if rate is 0.

    50 jobs for hosts that send 3.3 requests per hour:

    >>> round(time_to_send_s(50, 3.3) / 3600, 1)
    15.2
    >>> time_to_send_s(0, 0.0), time_to_send_s(1, 0.0)
    (0.0, None)
    """
    if jobs == 0:
        return Seconds(0.0)
    return Seconds(jobs / calls_per_hour * HOUR_S) if calls_per_hour > 0 else None
