"""What do an app's rows come to: cut points, percentiles and a summary, per processor type? Pure.

1 bring the decayed sums to `now`; 2 part the rows by processor type; 3 rank; 4 draw the cut points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from domain.apps import App, AppVersion, ProcessorType
from domain.hosts import STATS_HALF_LIFE_S
from domain.ranking import PERCENTILE_FIELDS, AppFacts, CutPoints, RankedPart
from domain.settings import Settings
from domain.units import Instant
from hoststats.cuts import median_safe_runtime_s, pooled, quantiles, retry_turnaround_s, slack_factors
from hoststats.ports import Table
from hoststats.ranking import Flags, Ranking, Record, mean_score, rank, turnaround_scores

DECAYED = ("relaxed_n", "relaxed_sum", "tight_n", "tight_sum", "tight_sum_sq", "tight_missed_n")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One (app, processor type), ranked."""

    cuts: CutPoints
    percentiles: Table
    summary: RankedPart


def rank_app(
    app: App, versions: Sequence[AppVersion], table: Table, *, facts: AppFacts, now: Instant, settings: Settings
) -> Iterator[Part]:
    """Each processor type that has rows, one after the other. The table's sums are changed in place."""
    bring_forward(table, now)
    kinds: dict[ProcessorType, list[int]] = {}
    for version in versions:
        kinds.setdefault(version.processor_type, []).append(version.app_version_id)
    for kind in sorted(kinds):
        rows = table if len(kinds) == 1 else table.take(np.flatnonzero(np.isin(table["app_version_id"], kinds[kind])))
        if rows.size:
            yield _part(app, kind, rows, facts=facts, now=now, settings=settings)


def bring_forward(table: Table, now: Instant) -> None:
    """Let the decayed sums lose the weight they have lost by `now`, in place: each times 2^(-(now - at) / 14 days).

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
    """What scores are made of, where a table has it."""
    return Record(table["relaxed_n"], table["relaxed_sum"], table["tight_n"], table["tight_missed_n"])


def _part(app: App, kind: ProcessorType, rows: Table, *, facts: AppFacts, now: Instant, settings: Settings) -> Part:
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
    return Part(cuts, _percentiles(rows, ranking), summary)


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
    """A record for every row but newcomers without a percentile: none is what they have."""
    has_p = ~np.isnan(ranking.p)
    percentiles = np.empty(int(np.count_nonzero(has_p)), np.dtype(list(PERCENTILE_FIELDS)))
    percentiles["host_id"] = rows["host_id"][has_p]
    percentiles["app_version_id"] = rows["app_version_id"][has_p]
    # Under the bootstrap rule X is not what P was made of.
    shown = has_p & ~np.isnan(ranking.y)
    percentiles["p"] = ranking.p[has_p]
    percentiles["x"] = np.where(shown, ranking.x, np.nan)[has_p]
    percentiles["y"] = ranking.y[has_p]
    # By host, as rows mostly come: a host's percentiles are found by where in the file its number is.
    return percentiles.take(np.argsort(percentiles["host_id"], kind="stable"))
