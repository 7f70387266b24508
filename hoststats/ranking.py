"""Ranks all rows (host, app version) for one (app, processor type). Pure; works on whole arrays.

domain/ranking.py applies the same rule to single rows, using the cut points computed here:

    X = (#{slower} + 0.5 #{equally fast, itself included}) / N      turnaround score, lower is better
    Y = (#{fewer} + 0.5 #{equally many, itself included}) / N       valid results in a row; +inf above 10
    P = min(X, Y), compared with >=

N counts the population: rows of active hosts with enough samples. Y is `scipy.stats.percentileofscore` / 100 with kind
"mean" (mid-rank), X is 1 minus the same of the score. With fewer than `ranking.min_rows` rows the bootstrap rule
applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.ranking import (
    BOOTSTRAP_P,
    FASTEST_QUARTER_P,
    FASTEST_QUARTER_X,
    LEAST_KNOWN_SAMPLES,
    MET_PER_MISSED,
    MISSED_PENALTY,
    SCORE_DECIMALS,
    SHRINKAGE,
)
from domain.settings import RankingSettings

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """p, x and y for each row (NaN if undefined), and the data for the cut points.

    `ordered` has the population's turnaround scores in ascending order, `in_a_row[k]` is the number of its rows with
    exactly k consecutive valid results, `n` is its size.
    """

    p: Floats
    x: Floats
    y: Floats
    n: int
    ordered: Floats
    in_a_row: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """For each row, as of one instant: sums of relaxed samples, and numbers of tight due dates in total and missed."""

    relaxed_n: Floats
    relaxed_sum: Floats
    tight_n: Floats
    tight_missed_n: Floats


def turnaround_scores(record: Record, *, score_mean: float) -> Floats:
    """Return domain.ranking.turnaround_score for each row.

    >>> none = np.zeros(2)
    >>> record = Record(np.array([2.0, 0.0]), np.array([4.0, 0.0]), tight_n=none, tight_missed_n=none)
    >>> turnaround_scores(record, score_mean=1.0).tolist()
    [1.5, 1.0]
    """
    n, missed = record.relaxed_n, record.tight_missed_n
    met = np.maximum(0.0, record.tight_n - missed)
    known = n >= LEAST_KNOWN_SAMPLES
    ahead = np.where(known, record.relaxed_sum / np.where(known, n, 1.0) - score_mean, 0.0)
    weight = n + np.where(ahead < 0.0, met, 0.0)
    penalty = MISSED_PENALTY * (missed - met / MET_PER_MISSED) / (n + SHRINKAGE + met + missed)
    return np.round(score_mean + ahead * weight / (weight + SHRINKAGE) + penalty, SCORE_DECIMALS)


def mean_score(n: Floats, total: Floats) -> float:
    """Return the score towards which small samples are shrunk: the mean of the rows' means, or 0 without samples.

    Rows with less than one effective sample are excluded. All hosts have the same weight; otherwise new hosts would
    start at the level of the hosts that do most of the work.

    >>> mean_score(np.array([2.0, 10.0, 0.1]), np.array([4.0, 10.0, 9.0]))
    1.5
    """
    known = n >= 1.0
    return float(np.mean(total[known] / n[known])) if known.any() else 0.0


def mid_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Return the mid-rank of each value, (#{below} + #{at or below}) / 2N, and the sorted values.

    >>> mid_ranks(np.array([4.0, 2.0, 1.0, 2.0]))[0].tolist()
    [0.875, 0.5, 0.125, 0.5]
    """
    size = values.size
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate((np.ones(min(1, size), bool), ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], size)[: starts.size]
    ranks = np.empty(size)
    ranks[order] = np.repeat((starts + ends) / (2.0 * max(1, size)), ends - starts)
    return ranks, ordered


def ranks_among(ordered: Floats, values: Floats) -> Floats:
    """Return the mid-ranks of values that need not be part of the population.

    >>> ranks_among(np.array([1.0, 2.0, 2.0, 4.0]), np.array([2.0, 3.0])).tolist()
    [0.5, 0.75]
    """
    below, at_or_below = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((below + at_or_below) / (2.0 * max(1, ordered.size)))


def valid_ranks(in_a_row: NDArray[np.int64], n: int, consecutive_valid: Counts) -> Floats:
    """Return Y for each row, from the number of rows with 0 to 10 consecutive valid results; +inf above 10.

    The table in docs/formulas.md#percentiles, N = 9: two rows with 0, two with 3, one with 10, four with more.

    >>> in_a_row = np.array([2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1])
    >>> valid_ranks(in_a_row, 9, np.array([0, 3, 10, 11], np.int32)).round(3).tolist()
    [0.111, 0.333, 0.5, inf]
    """
    fewer = np.cumsum(in_a_row) - in_a_row
    table = np.append((fewer + 0.5 * in_a_row) / max(1, n), np.inf)
    return np.asarray(table[np.minimum(consecutive_valid, in_a_row.size)])


def rank(
    scores: Floats,
    consecutive_valid: Counts,
    *,
    active: Flags,
    enough: Flags,
    failed: Flags,
    settings: RankingSettings,
) -> Ranking:
    """Rank all rows for one (app, processor type). `enough` marks rows with at least `min_samples` effective samples.

    The population consists of the active rows with enough samples. Rows of silent hosts are ranked against it but not
    counted. A row without enough samples is a newcomer: NaN. In a small population, a row whose last result failed has
    P = 0, the fastest quarter of rows with enough samples 0.9, and all other rows 0.5.

    >>> all_rows = np.ones(3, bool)
    >>> settings = RankingSettings(min_rows=3)
    >>> ranking = rank(np.array([1.0, 2.0, 3.0]), np.array([11, 12, 0], np.int32),
    ...                active=all_rows, enough=all_rows, failed=~all_rows, settings=settings)
    >>> ranking.p.round(3).tolist()
    [0.833, 0.5, 0.167]
    """
    population = active & enough
    n = int(np.count_nonzero(population))
    ranks, ordered = mid_ranks(scores[population])
    x = np.full(scores.size, np.nan)
    x[population] = 1.0 - ranks
    silent = enough & ~active
    if n and silent.any():
        x[silent] = 1.0 - ranks_among(ordered, scores[silent])
    infinite = settings.consecutive_valid_infinite
    counted = np.minimum(consecutive_valid[population], infinite + 1)
    in_a_row = np.bincount(counted, minlength=infinite + 2)[: infinite + 1]
    if n < settings.min_rows:
        return Ranking(bootstrap(x, failed=failed), *_none(scores.size), n, ordered, in_a_row)
    y = valid_ranks(in_a_row, n, consecutive_valid)
    y[~enough] = np.nan
    return Ranking(np.minimum(x, y), x, y, n, ordered, in_a_row)


def bootstrap(x: Floats, *, failed: Flags) -> Floats:
    """Return P in a small population that includes newcomers (x is NaN).

    >>> bootstrap(np.array([0.9, 0.4, np.nan, 0.9]), failed=np.array([False, False, False, True])).tolist()
    [0.9, 0.5, 0.5, 0.0]
    """
    p = np.full(x.size, BOOTSTRAP_P)
    p[x >= FASTEST_QUARTER_X] = FASTEST_QUARTER_P
    p[failed] = 0.0
    return p


def _none(size: int) -> tuple[Floats, Floats]:
    return np.full(size, np.nan), np.full(size, np.nan)
