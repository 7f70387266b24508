"""Reduces an app's rows to cut points, percentiles and a summary, per processor type. Pure; works on whole arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from domain.apps import App, AppVersion, ProcessorType
from domain.hosts import STATS_HALF_LIFE_S
from domain.ranking import PERCENTILE_FIELDS, AppFacts, CutPoints, RankedPart
from domain.settings import DeadlineSettings, Settings
from domain.units import Flop, Instant, Seconds
from hoststats.ports import Table
from hoststats.ranking import Flags, Floats, Ranking, Record, mean_score, rank, turnaround_scores

QUANTILES = 1000
TOP_QUANTILE_Z = 1.2816  # 90 % quantile of the normal distribution
LEAST_TOP_ROWS = 20  # minimum number of rows for a retry turnaround
POPULATION_SAMPLES = 10.0  # docs/formulas.md#run-times: weight of the app's slack, in samples of a host
LEAST_POPULATION_SAMPLES = 50.0  # with fewer samples, the app's slack is taken from the setting
MOST_SLACK = 10.0  # maximum of R_q / R, unless the setting is higher
ASSUMED_LN_RATIO_SD = 0.4  # assumed standard deviation of ln(turnaround / R) without measurements


def quantiles(ordered: Floats) -> tuple[float, ...]:
    """Return the values at quantiles (i + 0.5) / m of an ascending population, with m = min(N, 1000).

    Only values that occur, without interpolation, so that ties remain ties.

    >>> quantiles(np.array([1.0, 2.0, 2.0, 4.0]))
    (1.0, 2.0, 2.0, 4.0)
    >>> quantiles(np.arange(4000.0))[:3]
    (2.0, 6.0, 10.0)
    """
    size = min(ordered.size, QUANTILES)
    if size == 0:
        return ()
    positions = ((np.arange(size) + 0.5) * ordered.size / size).astype(np.int64)
    return tuple(ordered[positions].tolist())


def pooled(n: Floats, total: Floats, total_sq: Floats) -> tuple[float, float, float]:
    """Return number, mean and standard deviation of the samples in all rows together.

    >>> pooled(np.array([1.0, 3.0]), np.array([1.0, 9.0]), np.array([1.0, 27.0]))  # one 1 and three 3
    (4.0, 2.5, 0.8660254037844386)
    """
    samples = float(np.sum(n))
    if samples <= 0.0:
        return 0.0, 0.0, 0.0
    mean = float(np.sum(total)) / samples
    return samples, mean, math.sqrt(max(0.0, float(np.sum(total_sq)) / samples - mean * mean))


def retry_turnaround_s(
    p: Floats, n: Floats, total: Floats, total_sq: Floats, *, p_tight: float, facts: AppFacts
) -> Seconds | None:
    """Return T_retry, a retry's time on a good host including validation; None below 20 ranked rows with results.

    It is exp(mean + 1.2816 sd) of ln(turnaround in s) over the results of rows with P >= p_tight, or of the 20 best
    rows if fewer reach that, plus the median validation lag. `p` is NaN for rows without a percentile. With 20 rows
    that always take an hour and a lag of five minutes:

    >>> ln = math.log(3600.0)
    >>> hours = np.ones(20) * 4
    >>> facts = AppFacts(None, Seconds(300.0))
    >>> retry_turnaround_s(np.linspace(0, 1, 20), hours, hours * ln, hours * ln**2, p_tight=0.9, facts=facts)
    3900.0
    """
    ranked = np.sort(p[(n > 0) & ~np.isnan(p)])
    if ranked.size < LEAST_TOP_ROWS:
        return None
    good = (n > 0) & (p >= min(p_tight, float(ranked[-LEAST_TOP_ROWS])))
    _, mean, sd = pooled(n[good], total[good], total_sq[good])
    lag_s = facts.validation_lag_s or 0.0
    return Seconds(round(math.exp(mean + TOP_QUANTILE_Z * sd) + lag_s, 3))


def slack_factors(
    n: Floats, total: Floats, total_sq: Floats, *, app: tuple[float, float, float], settings: DeadlineSettings
) -> Floats:
    """Return R_q / R for each row, as scheduler/runtime.py computes it for a request.

    `app` has the number, mean and standard deviation M, S of the app's tight samples. The host's own samples are pooled
    with 10 pseudo-samples of that distribution, or of the setting's if the app has fewer than 50. The maximum is 10, or
    the setting.

    >>> app = (100.0, 0.3, 0.2)
    >>> tight = np.array([30.0]), np.array([9.0]), np.array([2.7])  # always 1.35 R
    >>> slack_factors(*tight, app=app, settings=DeadlineSettings()).round(3).tolist()  # exp(0.3 + 0.12816)
    [1.534]
    """
    z = settings.reliability_quantile_z
    samples, mean, sd = app
    if samples < LEAST_POPULATION_SAMPLES:
        sd = ASSUMED_LN_RATIO_SD
        mean = math.log(settings.slack_factor) - z * sd
    weight = n + POPULATION_SAMPLES
    own_mean = (total + POPULATION_SAMPLES * mean) / weight
    own_square = (total_sq + POPULATION_SAMPLES * (sd * sd + mean * mean)) / weight
    ln_slack = own_mean + z * np.sqrt(np.maximum(0.0, own_square - own_mean**2))
    return np.exp(np.minimum(ln_slack, math.log(max(MOST_SLACK, settings.slack_factor))))


def median_safe_runtime_s(
    s_per_flop: Floats, slack: Floats, *, typical_flop: Flop | None, settings: DeadlineSettings
) -> Seconds | None:
    """Return the median over hosts of R_q = max(R slack, R + min_slack) for the app's typical job; None if unknown.

    A typical job of 3.6e12 flop takes three hosts 1, 2 and 4 hours, with a slack of 2.5:

    >>> hours = np.array([1.0, 2.0, 4.0]) * 1e-9
    >>> median_safe_runtime_s(hours, np.full(3, 2.5), typical_flop=Flop(3.6e12), settings=DeadlineSettings())
    18000.0
    """
    known = np.isfinite(s_per_flop)
    if typical_flop is None or not known.any():
        return None
    runtime_s = s_per_flop[known] * typical_flop
    return Seconds(float(np.median(np.maximum(runtime_s * slack[known], runtime_s + settings.min_slack_s))))


DECAYED = ("relaxed_n", "relaxed_sum", "tight_n", "tight_sum", "tight_sum_sq", "tight_missed_n")


@dataclass(frozen=True, slots=True, eq=False)
class RankedPiece:
    """The ranking for one (app, processor type)."""

    cuts: CutPoints
    percentiles: Table
    summary: RankedPart


def rank_app(
    app: App, versions: Sequence[AppVersion], table: Table, *, facts: AppFacts, now: Instant, settings: Settings
) -> Iterator[RankedPiece]:
    """Yield the ranking of each processor type with rows. Modifies the table's sums in place."""
    bring_forward(table, now)
    kinds: dict[ProcessorType, list[int]] = {}
    for version in versions:
        kinds.setdefault(version.processor_type, []).append(version.app_version_id)
    for kind in sorted(kinds):
        rows = table if len(kinds) == 1 else table.take(np.flatnonzero(np.isin(table["app_version_id"], kinds[kind])))
        if rows.size:
            yield _part(app, kind, rows, facts=facts, now=now, settings=settings)


def bring_forward(table: Table, now: Instant) -> None:
    """Decay the sums to `now` in place: multiply each by 2^(-(now - at) / 14 days).

    >>> table = np.zeros(1, [("stats_at", "f8"), *((name, "f8") for name in DECAYED)])
    >>> table["relaxed_n"] = 4.0
    >>> bring_forward(table, Instant(14 * 86400.0))
    >>> table["relaxed_n"].tolist()
    [2.0]
    """
    weight = np.exp2(-np.maximum(0.0, now - table["stats_at"]) / STATS_HALF_LIFE_S)
    for name in DECAYED:
        table[name] *= weight
    table["stats_at"] = np.maximum(now, table["stats_at"])


def record_of(table: Table) -> Record:
    """Return the inputs for the scores from a table."""
    return Record(table["relaxed_n"], table["relaxed_sum"], table["tight_n"], table["tight_missed_n"])


def _part(
    app: App, kind: ProcessorType, rows: Table, *, facts: AppFacts, now: Instant, settings: Settings
) -> RankedPiece:
    enough: Flags = rows["relaxed_n"] + rows["tight_n"] >= settings.ranking.min_samples
    population: Flags = rows["active"] & enough
    score_mean = mean_score(rows["relaxed_n"][population], rows["relaxed_sum"][population])
    ranking = rank(
        turnaround_scores(record_of(rows), score_mean=score_mean),
        rows["consecutive_valid"],
        active=rows["active"],
        enough=enough,
        failed=rows["failed"],
        settings=settings.ranking,
    )
    cuts = _cut_points(
        app, kind, rows, ranking, population=population, score_mean=score_mean, facts=facts, now=now, settings=settings
    )
    summary = RankedPart(
        app.app_id,
        app.name,
        kind,
        rows=rows.size,
        population=ranking.n,
        ranked=int(np.count_nonzero(~np.isnan(ranking.y))),
        newcomers=int(np.count_nonzero(~enough)),
        small_population=ranking.n < settings.ranking.min_rows,
        median_score=float(ranking.ordered[(ranking.n - 1) // 2]) if ranking.n else None,
        median_safe_runtime_s=cuts.median_safe_runtime_s,
        retry_turnaround_s=cuts.retry_turnaround_s,
    )
    return RankedPiece(cuts, _percentiles(rows, ranking), summary)


def _cut_points(
    app: App,
    kind: ProcessorType,
    rows: Table,
    ranking: Ranking,
    *,
    population: Flags,
    score_mean: float,
    facts: AppFacts,
    now: Instant,
    settings: Settings,
) -> CutPoints:
    tight = (rows["tight_n"], rows["tight_sum"], rows["tight_sum_sq"])
    tight_n, tight_mean, tight_sd = of_app = pooled(*tight)
    slack = slack_factors(*(sums[population] for sums in tight), app=of_app, settings=settings.deadline)
    p = np.where(population, ranking.p, np.nan)
    return CutPoints(
        app.app_id,
        kind,
        now,
        ranking.n,
        quantiles(ranking.ordered),
        tuple(ranking.in_a_row.tolist()),
        score_mean=score_mean,
        tight_n=tight_n,
        tight_mean=tight_mean,
        tight_sd=tight_sd,
        retry_turnaround_s=retry_turnaround_s(
            p,
            *(rows[name] for name in ("log_n", "log_sum", "log_sum_sq")),
            p_tight=settings.deadline.p_tight,
            facts=facts,
        ),
        median_safe_runtime_s=median_safe_runtime_s(
            rows["s_per_flop"][population], slack, typical_flop=facts.typical_flop, settings=settings.deadline
        ),
    )


def _percentiles(rows: Table, ranking: Ranking) -> Table:
    """Return a record for each row with a percentile. Newcomers without a percentile are omitted."""
    has_p = ~np.isnan(ranking.p)
    percentiles = np.empty(int(np.count_nonzero(has_p)), np.dtype(list(PERCENTILE_FIELDS)))
    percentiles["host_id"] = rows["host_id"][has_p]
    percentiles["app_version_id"] = rows["app_version_id"][has_p]
    # Under the bootstrap rule, P does not depend on X.
    shown = has_p & ~np.isnan(ranking.y)
    percentiles["p"] = ranking.p[has_p]
    percentiles["x"] = np.where(shown, ranking.x, np.nan)[has_p]
    percentiles["y"] = ranking.y[has_p]
    # Sorted by host, as rows usually are: a host's percentiles are found by position in the file.
    return percentiles.take(np.argsort(percentiles["host_id"], kind="stable"))
