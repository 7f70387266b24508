"""A scenario as it is shipped: limits and what was reached, every figure, charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.policy_quality.limits import (
    MOST_DEADLINE_MODE,
    MOST_INSTANCES,
    MOST_OVER_FIXED,
    limits_of,
    ratio,
    told,
)
from benchmarks.policy_quality.sections import (
    ACCELERATED,
    FIXED,
    MUSTER,
    PROPOSAL,
    SCENARIOS,
    cases_with,
    pictures,
)
from domain.batches import QoS
from domain.units import HOUR_S
from simulator.charts import write_charts
from simulator.metrics import Figure
from simulator.report import CLAIRVOYANT, Comparison, markdown_of, number, percent
from simulator.run import Case, Ran
from simulator.sweep import compared

RULES = (MUSTER, ACCELERATED, FIXED, PROPOSAL, CLAIRVOYANT)
TOO_LONG = {"large": (PROPOSAL,)}  # its batches are not over at the end: what it takes tells no more than `small`

Goal = tuple[str, Figure, float, Callable[[float], str]]  # what, reached, the limit, how it is told


def rules_of(scenario: str) -> list[str]:
    return [rule for rule in RULES if rule not in TOO_LONG.get(scenario, ())]


@dataclass(frozen=True, slots=True)
class Measured:
    """Satisfies Section."""

    scenario: str
    seeds: Sequence[int]

    @property
    def name(self) -> str:
        return self.scenario

    @property
    def after(self) -> str:
        place = SCENARIOS.index(self.scenario) if self.scenario in SCENARIOS else 0
        return SCENARIOS[place - 1] if place else self.scenario

    @property
    def cases(self) -> list[Case]:
        return cases_with(self.scenario, rules_of(self.scenario), self.seeds)

    def text(self, ran: Sequence[Ran], docs: Path) -> str:
        cases = self.cases
        found = compared(cases, ran)
        parts = [
            f"### {self.scenario}\n",
            goals_table(goals_of(self.scenario, found)),
            f"AFAP makespans by seed, in hours: {by_seed(cases, ran)}.\n",
            markdown_of(found),
            pictures(write_charts(found, docs / "charts")),
        ]
        return "\n".join(parts)


def goals_of(scenario: str, plain: Comparison) -> list[Goal]:
    """What was asked of `muster`, and what it reached on a scenario."""
    rules = plain.rules
    ours = rules[MUSTER]
    limits = limits_of(scenario)
    fixed = rules[FIXED].makespan_s or {}
    afap_s = ours.afap_makespan_s
    over_accelerated = ratio(afap_s, rules[ACCELERATED].afap_makespan_s)
    over_the_bound = ratio(afap_s, rules[CLAIRVOYANT].afap_makespan_s)
    goals: list[Goal] = [
        ("AFAP makespan over `accelerated`", over_accelerated, limits.over_accelerated, number),
        ("AFAP makespan over the clairvoyant bound", over_the_bound, limits.over_the_bound, number),
        ("instances per job", ours.instances_per_job, MOST_INSTANCES, number),
        ("instances run in deadline mode", ours.deadline_mode_fraction, MOST_DEADLINE_MODE, percent),
    ]
    for qos in (QoS.LONG_DEADLINE, QoS.THROUGHPUT):
        reached = ratio((ours.makespan_s or {}).get(qos), fixed.get(qos))
        goals.append((f"{qos.replace('_', '-')} makespan over `fixed`", reached, MOST_OVER_FIXED, number))
    goals.append(("batches not over at the end", ours.batches_unfinished, 0.0, number))
    return [goal for goal in goals if goal[1] is not None]


def goals_table(goals: Iterable[Goal]) -> str:
    """Limits that are missed are in bold."""
    lines = ["| `muster` | reached | limit |", "|---|---:|---:|"]
    lines += [
        f"| {name} | {told(reached, spoken, limit)} | {spoken(limit)} |" for name, reached, limit, spoken in goals
    ]
    return "\n".join(lines) + "\n"


def by_seed(cases: Sequence[Case], ran: Sequence[Ran]) -> str:
    """AFAP makespans in hours, rule by rule."""
    found: dict[str, list[str]] = {}
    for case, one in zip(cases, ran, strict=True):
        value = one.figures.afap_makespan_s
        found.setdefault(case.rule, []).append("-" if value is None else f"{value / HOUR_S:.0f}")
    return "; ".join(f"`{rule}` {', '.join(values)}" for rule, values in found.items())
