"""Formats a comparison as a table and as a JSON object. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.robustness.columns import COLUMNS, Column, Measured, Summary, Value, summary_of
from benchmarks.robustness.plan import ACCELERATED, Planned
from domain.deadline_rules import CLAIRVOYANT
from simulator.metrics import Figures, as_json
from simulator.report import NOT_OVER
from simulator.robustness import drawn_scenario
from simulator.run import Ran

Run = tuple[Planned, Ran]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The finished runs of complete populations."""

    runs: Sequence[Run]

    @property
    def populations(self) -> list[int]:
        return list(dict.fromkeys(planned.population for planned, _ in self.runs))

    @property
    def contestants(self) -> list[str]:
        """Return the contestants in a table: all except the bound, which is only a divisor."""
        names = dict.fromkeys(planned.contestant.name for planned, _ in self.runs)
        return [name for name in names if name != CLAIRVOYANT]

    def by_population(self, column: Column, contestant: str) -> dict[int, Value | None]:
        """Return the medians over seeds, or means for columns that use means."""
        found: dict[int, list[Value]] = {number: [] for number in self.populations}
        for number, measured in self._measured(contestant):
            value = column.of(measured)
            if value is not None:
                found[number].append(value)
        return {number: column.middle(values) for number, values in found.items()}

    def summary(self, column: Column, contestant: str) -> Summary | None:
        return summary_of(column, self.by_population(column, contestant))

    def _measured(self, contestant: str) -> Iterator[tuple[int, Measured]]:
        figures = {(one.population, one.seed, one.contestant.name): ran.figures for one, ran in self.runs}
        for one, ran in self.runs:
            if one.contestant.name != contestant:
                continue
            population = one.case.scenario.population
            yield (
                one.population,
                Measured(
                    ran.figures,
                    figures[one.population, one.seed, ACCELERATED],
                    figures.get((one.population, one.seed, CLAIRVOYANT), Figures()),
                    population.loss_fraction,
                    population.error_fraction,
                ),
            )

    def table(self) -> str:
        """Return a Markdown table with a row per column of COLUMNS and the median and worst case per contestant."""
        names = self.contestants
        lines = [f"| median; worst (population) | wanted | {' | '.join(names)} |", f"|---|---|{'---:|' * len(names)}"]
        marked = False
        for column in COLUMNS:
            summaries = [self.summary(column, name) for name in names]
            if not any(summaries):
                continue
            marked = marked or any(one and (one.middle.more or one.worst.more) for one in summaries)
            lines.append(f"| {column.title} | {column.wanted} | {' | '.join(map(_cell, summaries))} |")
        return "\n".join([*lines, *(["", f"{NOT_OVER}."] if marked else [])]) + "\n"

    def population_table(self, contestant: str) -> str:
        """Return a row per population with the contestant's medians over seeds."""
        shown = [column for column in COLUMNS if self.summary(column, contestant)]
        lines = [
            f"| {contestant}: population | hosts | loss | errors | {' | '.join(column.title for column in shown)} |",
            f"|---:|---:|---:|---:|{'---:|' * len(shown)}",
        ]
        found = [self.by_population(column, contestant) for column in shown]
        scenarios = {one.population: one.case.scenario for one, _ in self.runs}
        for number in self.populations:
            population = scenarios[number].population
            about = f"{population.arrivals[0].hosts} | {population.loss_fraction:.3f} | {population.error_fraction:.3f}"
            cells = [str(values[number]) if values[number] is not None else "" for values in found]
            lines.append(f"| {number} | {about} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def as_json(self, conditions: Mapping[str, object]) -> dict[str, object]:
        return {
            "conditions": dict(conditions),
            "columns": {
                name: {column.key: _summary(self.summary(column, name)) for column in COLUMNS}
                for name in self.contestants
            },
            "populations": {
                str(number): {
                    "scenario": drawn_scenario(number),
                    "contestants": {
                        name: {column.key: _value(self.by_population(column, name)[number]) for column in COLUMNS}
                        for name in self.contestants
                    },
                }
                for number in self.populations
            },
            "runs": [
                {
                    "population": one.population,
                    "seed": one.seed,
                    "contestant": one.contestant.name,
                    "rule": one.contestant.rule,
                    "settings": dict(one.contestant.settings),
                    "figures": as_json(ran.figures),
                }
                for one, ran in self.runs
            ],
        }


def _cell(summary: Summary | None) -> str:
    return f"{summary.middle}; {summary.worst} ({summary.worst_population})" if summary else ""


def _summary(summary: Summary | None) -> dict[str, object] | None:
    if summary is None:
        return None
    return {
        "middle": _value(summary.middle),
        "worst": _value(summary.worst),
        "worst_population": summary.worst_population,
        "populations": summary.populations,
    }


def _value(value: Value | None) -> dict[str, object] | None:
    if value is None:
        return None
    marks = {"more": True} if value.more else {"less": True} if value.less else {}
    return {"value": float(f"{value.value:.6g}"), **marks}
