"""Formats a comparison of deadline rules on one scenario as a console table and as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.table import Table

from domain.batches import QoS, kind_in_words
from domain.deadline_rules import CLAIRVOYANT
from domain.units import HOUR_S
from simulator.metrics import OTHERS, Figure, Figures, as_json


@dataclass(frozen=True, slots=True)
class BatchEnds:
    """The ends of the jobs of AFAP batches, in seconds after submission. `jobs` includes unfinished jobs."""

    ends_s: tuple[float, ...]
    jobs: int


@dataclass(frozen=True, slots=True)
class RuleComparison:
    """The figures of each rule on one scenario, as medians over seeds. `ends` includes the jobs of all seeds."""

    scenario: str
    seeds: int
    rules: Mapping[str, Figures]
    ends: Mapping[str, BatchEnds] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the JSON object that a command prints last. Equal figures give equal text."""
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "rules": {rule: as_json(figures) for rule, figures in self.rules.items()},
        }


def hours(value: float) -> str:
    """Return a duration in hours, for a table cell.

    >>> hours(5400.0)
    '1.5 h'
    """
    return f"{value / HOUR_S:.1f} h"


def percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def number(value: float) -> str:
    return f"{value:.2f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def minutes(value: float) -> str:
    return f"{value / 60.0:.1f} min"


NOT_OVER = '">" marks batches that did not finish before the simulation ended: the true value is larger'


def shown(value: Figure, spoken: Callable[[float], str], *, more: bool = False) -> str:
    """Return a table cell. With `more`, the true value is larger and the cell starts with `>`.

    >>> shown(5400.0, hours), shown(5400.0, hours, more=True), shown(None, hours)
    ('1.5 h', '> 1.5 h', '')
    """
    if value is None:
        return ""
    return f"> {spoken(value)}" if more else spoken(value)


def quotient(value: Figures, base: Figures) -> str:
    """Return the ratio of two makespans, marked with `>` or `<` if one of them was cut short, empty if both were.

    >>> day, cut = Figures(makespan_s={"afap": 86400.0}), Figures(makespan_s={"afap": 86400.0}, cut_short=("afap",))
    >>> quotient(day, day), quotient(cut, day), quotient(day, cut), quotient(cut, cut)
    ('1.00', '> 1.00', '< 1.00', '')
    """
    ours, theirs = value.makespan("afap"), base.makespan("afap")
    more, less = "afap" in value.cut_short, "afap" in base.cut_short
    if ours is None or not theirs or (more and less):
        return ""
    return f"{'> ' if more else '< ' if less else ''}{number(ours / theirs)}"


class ReportRow(NamedTuple):
    """A row of the table: its label, one cell per rule, and the field of `Figures` that it shows."""

    label: str
    cells: list[str]
    key: str


Spoken = Callable[[float], str]
Line = tuple[str, str, Spoken]  # field, label, words

SPANS: tuple[tuple[str, str, str], ...] = (  # field, label, kind of batch
    ("afap_makespan_s", "AFAP makespan", str(QoS.AFAP)),
    ("other_makespan_s", "median makespan over all long-deadline and throughput batches", OTHERS),
)
LINES: tuple[Line, ...] = (  # most important first
    ("batches_unfinished", "unfinished batches", whole),
    ("jobs_failed", "failed jobs", whole),
    ("deadline_miss_fraction", "late instances", percent),
    ("never_returned_fraction", "instances never returned", percent),
    ("instances_per_job", "instances per job", number),
    ("jobs_per_day", "jobs per day", whole),
    ("use_fraction", "processor utilization while work waited", percent),
    ("refused_feasible_fraction", "requests refused despite a feasible job", percent),
    ("tight_fraction", "tight due dates", percent),
    ("deadline_mode_fraction", "jobs run in deadline mode", percent),
    ("preempted_s_per_job", "delay of other work, per job", minutes),
    ("validation_delay_s", "time from report to validation, median", minutes),
    ("validation_delay_p90_s", "time from report to validation, 90th percentile", minutes),
    ("fairness_gap_of_all_fraction", "unfair share of all work sent", percent),
    ("fairness_gap_fraction", "unfair share of work sent while two submitters waited", percent),
    ("afap_makespan_in_share_s", "AFAP makespan without deadline mode", hours),
    ("forecast_coverage_fraction", "batches that ended by the latest end (q90)", percent),
    ("forecast_promise_ratio", "forecast / actual time left at 50 % of the jobs", number),
)
TABLES: tuple[Line, ...] = (
    ("tail_s", "tail (last 10 % of the jobs), {}", hours),
    ("wait_s", "wait of jobs, processors per job: {}", hours),
    ("wait_by_length_s", "wait of jobs of at least {} Gflop", hours),
    ("forecast_error", "error of the expected end (q50) at {} % of the jobs", number),
    ("forecast_ratio", "expected (q50) / actual time left at {} % of the jobs", number),
    ("forecast_q90_coverage", "batches that ended by the q90 at {} % of the jobs", percent),
)


def rows_of(comparison: RuleComparison) -> list[ReportRow]:
    """Return the rows, most important first, without those that have no values."""
    every = list(comparison.rules.values())
    spans = [ReportRow(label, [_span(figures, kind) for figures in every], key) for key, label, kind in SPANS]
    rows = [
        ReportRow(f"makespan, {kind_in_words(kind)}", [_span(figures, kind) for figures in every], "makespan_s")
        for kind in kinds_of(every)
        if kind != QoS.AFAP  # in SPANS
    ]
    for key, label, spoken in LINES:
        rows.append(ReportRow(label, [shown(getattr(figures, key), spoken) for figures in every], key))
    for key, label, spoken in TABLES:
        tables: list[Mapping[str, Figure]] = [getattr(figures, key) or {} for figures in every]
        names = sorted({name for table in tables for name in table}, key=_by_number)
        rows.extend(
            ReportRow(_label(label, name), [shown(table.get(name), spoken) for table in tables], key) for name in names
        )
    bound = comparison.rules.get(CLAIRVOYANT)
    if bound is not None and bound.afap_makespan_s:
        over = [quotient(figures, bound) for figures in every]
        spans.insert(1, ReportRow("AFAP makespan over the bound", over, "afap_makespan_s"))
    return [row for row in (*spans, *rows) if any(row.cells)]


def _label(name: str, key: str) -> str:
    """Return the label of a row; sizes have keys in flop.

    >>> _label("at least {} Gflop", "1e+12"), _label("processors per job: {}", "1")
    ('at least 1000 Gflop', 'processors per job: 1')
    >>> _label("tail, {}", "afap")
    'tail, AFAP'
    """
    return name.format(f"{float(key) / 1e9:g}" if name.endswith("Gflop") else kind_in_words(key))


def kinds_of(every: Sequence[Figures]) -> list[str]:
    """Return the kinds of batches that occur in any of the figures, sorted."""
    return sorted({kind for figures in every for kind in figures.makespan_s or {}})


def _span(figures: Figures, makespan: str) -> str:
    return shown(figures.makespan(makespan), hours, more=makespan in figures.cut_short)


def _by_number(key: str) -> tuple[float, str]:
    """Return a sort key that puts numbers in order of value, followed by names."""
    try:
        return float(key), ""
    except ValueError:
        return math.inf, key


def remark(comparison: RuleComparison) -> str:
    """Return the footnote that explains the table's `>` and `<` marks, or an empty string."""
    return NOT_OVER if any(figures.cut_short for figures in comparison.rules.values()) else ""


def table_of(comparison: RuleComparison) -> Table:
    """Return the comparison as a table for the console."""
    seeds = f"{comparison.seeds} seed{'s' if comparison.seeds != 1 else ''}"
    title = f"{comparison.scenario}: medians over {seeds}"
    table = Table(title=title, title_justify="left", caption=remark(comparison) or None, caption_justify="left")
    table.add_column("")
    for rule in comparison.rules:
        table.add_column(rule, justify="right")
    for row in rows_of(comparison):
        table.add_row(row.label, *row.cells)
    return table
