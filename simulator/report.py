"""Formats a comparison of deadline rules on one scenario as a console table and as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from domain.batches import QoS
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


Line = tuple[str, Callable[[Figures], Figure], Callable[[float], str]]

SPANS: tuple[tuple[str, str], ...] = (
    ("AFAP makespan", str(QoS.AFAP)),
    ("median makespan over all long-deadline and throughput batches", OTHERS),
)
LINES: tuple[Line, ...] = (  # most important first
    ("unfinished batches", lambda f: f.batches_unfinished, whole),
    ("failed jobs", lambda f: f.jobs_failed, whole),
    ("late instances", lambda f: f.deadline_miss_fraction, percent),
    ("instances never returned", lambda f: f.never_returned_fraction, percent),
    ("instances per job", lambda f: f.instances_per_job, number),
    ("jobs per day", lambda f: f.jobs_per_day, whole),
    ("processor utilization while work waited", lambda f: f.use_fraction, percent),
    ("requests refused despite a feasible job", lambda f: f.refused_feasible_fraction, percent),
    ("tight due dates", lambda f: f.tight_fraction, percent),
    ("jobs run in deadline mode", lambda f: f.deadline_mode_fraction, percent),
    ("delay of other work, per job", lambda f: f.preempted_s_per_job, minutes),
    ("time from report to validation, median", lambda f: f.validation_delay_s, minutes),
    ("time from report to validation, 90th percentile", lambda f: f.validation_delay_p90_s, minutes),
    ("unfair share of all work sent", lambda f: f.fairness_gap_of_all_fraction, percent),
    ("unfair share of work sent while two submitters waited", lambda f: f.fairness_gap_fraction, percent),
    ("AFAP makespan without deadline mode", lambda f: f.afap_makespan_in_share_s, hours),
    ("batches that ended by the latest end (q90)", lambda f: f.forecast_coverage_fraction, percent),
    ("forecast / actual time left at 50 % of the jobs", lambda f: f.forecast_promise_ratio, number),
)
Spoken = Callable[[float], str]
TABLES: tuple[tuple[str, Callable[[Figures], Mapping[str, Figure] | None], Spoken], ...] = (
    ("tail (last 10 % of the jobs), {}", lambda f: f.tail_s, hours),
    ("wait of jobs, processors per job: {}", lambda f: f.wait_s, hours),
    ("wait of jobs of at least {} Gflop", lambda f: f.wait_by_length_s, hours),
    ("error of the expected end (q50) at {} % of the jobs", lambda f: f.forecast_error, number),
    ("expected (q50) / actual time left at {} % of the jobs", lambda f: f.forecast_ratio, number),
    ("batches that ended by the q90 at {} % of the jobs", lambda f: f.forecast_q90_coverage, percent),
)


def rows_of(comparison: RuleComparison) -> list[tuple[str, list[str]]]:
    """Return each row's label with one cell per rule, most important first. Rows without any values are omitted."""
    every = list(comparison.rules.values())
    spans = [(name, [_span(figures, key) for figures in every]) for name, key in SPANS]
    rows = [(f"makespan, {kind}", [_span(figures, kind) for figures in every]) for kind in kinds_of(every)]
    rows.extend((name, [shown(of(figures), spoken) for figures in every]) for name, of, spoken in LINES)
    for name, table_of, spoken in TABLES:
        tables = [table_of(figures) or {} for figures in every]
        keys = sorted({key for table in tables for key in table}, key=_by_number)
        rows.extend((_label(name, key), [shown(table.get(key), spoken) for table in tables]) for key in keys)
    bound = comparison.rules.get(CLAIRVOYANT)
    if bound is not None and bound.afap_makespan_s:
        spans.insert(1, ("AFAP makespan over the bound", [quotient(figures, bound) for figures in every]))
    return [(name, cells) for name, cells in (*spans, *rows) if any(cells)]


def _label(name: str, key: str) -> str:
    """Return the label of a row; sizes have keys in flop.

    >>> _label("at least {} Gflop", "1e+12"), _label("processors per job: {}", "1")
    ('at least 1000 Gflop', 'processors per job: 1')
    """
    return name.format(f"{float(key) / 1e9:g}" if name.endswith("Gflop") else key)


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
    for name, cells in rows_of(comparison):
        table.add_row(name, *cells)
    return table
