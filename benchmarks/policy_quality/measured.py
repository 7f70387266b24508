"""A scenario as it is shipped: limits and what was reached, every figure, charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.policy_quality.limits import (
    MOST_DEADLINE_MODE,
    MOST_INSTANCES,
    MOST_OVER_FIXED,
    limits_of,
    over,
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
from simulator.report import CLAIRVOYANT, Comparison, markdown_of, number, percent, shown, whole
from simulator.run import Case, Ran
from simulator.sweep import compared

RULES = (MUSTER, ACCELERATED, FIXED, PROPOSAL, CLAIRVOYANT)
TOO_LONG = {"large": (PROPOSAL,)}  # its batches are not over at the end: what it takes tells no more than `small`

Goal = tuple[str, str, str]  # what, what was reached, the limit


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
    """What was asked of `muster`, and what it reached on a scenario; in bold what misses its limit."""
    rules = plain.rules
    ours, fixed = rules[MUSTER], rules[FIXED]
    limits = limits_of(scenario)
    accelerated, bound = limits.over_accelerated, limits.over_the_bound
    goals = [
        ("AFAP makespan over `accelerated`", over(ours, rules[ACCELERATED], accelerated), number(accelerated)),
        ("AFAP makespan over the clairvoyant bound", over(ours, rules[CLAIRVOYANT], bound), number(bound)),
        ("instances per job", told(ours.instances_per_job, number, MOST_INSTANCES), number(MOST_INSTANCES)),
        (
            "instances run in deadline mode",
            told(ours.deadline_mode_fraction, percent, MOST_DEADLINE_MODE),
            percent(MOST_DEADLINE_MODE),
        ),
    ]
    for qos in (QoS.LONG_DEADLINE, QoS.THROUGHPUT):
        name = f"{qos.replace('_', '-')} makespan over `fixed`"
        goals.append((name, over(ours, fixed, MOST_OVER_FIXED, qos), number(MOST_OVER_FIXED)))
    goals.append(("batches not over at the end", told(ours.batches_unfinished, whole, 0.0), whole(0.0)))
    return [goal for goal in goals if goal[1]]


def goals_table(goals: Iterable[Goal]) -> str:
    lines = ["| `muster` | reached | limit |", "|---|---:|---:|"]
    lines += [f"| {name} | {reached} | {limit} |" for name, reached, limit in goals]
    return "\n".join(lines) + "\n"


def by_seed(cases: Sequence[Case], ran: Sequence[Ran]) -> str:
    """AFAP makespans in hours, rule by rule."""
    found: dict[str, list[str]] = {}
    for case, one in zip(cases, ran, strict=True):
        span_s, cut_short = one.figures.afap_makespan_s, QoS.AFAP in one.figures.cut_short
        found.setdefault(case.rule, []).append(shown(span_s, lambda s: f"{s / HOUR_S:.0f}", more=cut_short) or "-")
    return "; ".join(f"`{rule}` {', '.join(values)}" for rule, values in found.items())
