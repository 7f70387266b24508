"""A comparison of rules on one scenario, for people and for machines: a table, and one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.table import Table

from domain.units import HOUR_S
from simulator.metrics import Figure, Figures, as_json

CLAIRVOYANT = "clairvoyant"


@dataclass(frozen=True, slots=True)
class Ends:
    """How urgent batches came to their end: seconds from submission to the end of each of so many jobs that is over."""

    ends_s: tuple[float, ...]
    jobs: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What rules came to on one scenario: medians over seeds, by rule; `ends` are of all seeds together."""

    scenario: str
    seeds: int
    rules: Mapping[str, Figures]
    ends: Mapping[str, Ends] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The object a command prints last; the same figures give the same text."""
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "rules": {rule: as_json(figures) for rule, figures in self.rules.items()},
        }


def hours(value: float) -> str:
    """A length of time as it stands in a table.

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


Line = tuple[str, Callable[[Figures], Figure], Callable[[float], str]]

LINES: tuple[Line, ...] = (
    ("AFAP makespan", lambda f: f.afap_makespan_s, hours),
    ("AFAP makespan, nobody in deadline mode", lambda f: f.afap_makespan_in_share_s, hours),
    ("long-deadline and throughput makespan", lambda f: f.other_makespan_s, hours),
    ("instances per job", lambda f: f.instances_per_job, number),
    ("deadlines missed", lambda f: f.deadline_miss_fraction, percent),
    ("tight due dates", lambda f: f.tight_fraction, percent),
    ("run in deadline mode", lambda f: f.deadline_mode_fraction, percent),
    ("others kept waiting, per job", lambda f: f.preempted_s_per_job, minutes),
    ("report to validation, median", lambda f: f.validation_delay_s, minutes),
    ("report to validation, 90 %", lambda f: f.validation_delay_p90_s, minutes),
    ("work that another should have had", lambda f: f.fairness_gap_fraction, percent),
    ("batches over before their q90", lambda f: f.forecast_coverage_fraction, percent),
    ("requests refused although feasible", lambda f: f.refused_feasible_fraction, percent),
    ("batches not over", lambda f: f.batches_unfinished, whole),
    ("jobs failed", lambda f: f.jobs_failed, whole),
)
TABLES: tuple[tuple[str, Callable[[Figures], Mapping[str, Figure] | None]], ...] = (
    ("makespan, {}", lambda f: f.makespan_s),
    ("tail from 90 %, {}", lambda f: f.tail_s),
    ("wait of jobs on {} processors", lambda f: f.wait_s),
)


def rows_of(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """What is measured, and a cell per rule; lines that no rule has are left out."""
    every = list(comparison.rules.values())
    rows = [(name, [_cell(of(figures), spoken) for figures in every]) for name, of, spoken in LINES]
    for name, table_of in TABLES:
        tables = [table_of(figures) or {} for figures in every]
        keys = sorted({key for table in tables for key in table})
        rows.extend((name.format(key), [_cell(table.get(key), hours) for table in tables]) for key in keys)
    bound = comparison.rules.get(CLAIRVOYANT)
    if bound is not None and bound.afap_makespan_s:
        least_s = bound.afap_makespan_s
        ratios = [None if f.afap_makespan_s is None else f.afap_makespan_s / least_s for f in every]
        rows.insert(1, ("AFAP makespan over the bound", [_cell(ratio, number) for ratio in ratios]))
    return [(name, cells) for name, cells in rows if any(cells)]


def _cell(value: Figure, spoken: Callable[[float], str]) -> str:
    return "" if value is None else spoken(value)


def table_of(comparison: Comparison) -> Table:
    """The comparison as a table for the console."""
    seeds = f"{comparison.seeds} seed{'s' if comparison.seeds != 1 else ''}"
    table = Table(title=f"{comparison.scenario}: medians over {seeds}", title_justify="left")
    table.add_column("")
    for rule in comparison.rules:
        table.add_column(rule, justify="right")
    for name, cells in rows_of(comparison):
        table.add_row(name, *cells)
    return table


def markdown_of(comparison: Comparison) -> str:
    """The same as a table for a document."""
    lines = [
        f"| {comparison.scenario}, medians over {comparison.seeds} | {' | '.join(comparison.rules)} |",
        f"|---|{'---:|' * len(comparison.rules)}",
        *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows_of(comparison)),
    ]
    return "\n".join(lines) + "\n"
