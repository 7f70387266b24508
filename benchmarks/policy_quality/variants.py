"""A scenario with other losses and delay bounds: a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from benchmarks.policy_quality.sections import ACCELERATED, FIXED, MUSTER, cases_with
from domain.batches import QoS
from simulator.metrics import OTHERS
from simulator.report import CLAIRVOYANT, NOT_OVER, Comparison, hours, number, percent, remark, shown
from simulator.run import Case, Ran
from simulator.sweep import compared

RULES = (MUSTER, ACCELERATED, FIXED, CLAIRVOYANT)
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "loss 5 %, bound 7 days": {},
    "loss 2 %": {"population.loss_fraction": 0.02},
    "loss 10 %": {"population.loss_fraction": 0.10},
    "bound 2 days": {"delay_bound_days": 2},
    "bound 14 days": {"delay_bound_days": 14, "days": 60},  # long enough for who loses a job twice
}
COLUMNS = ("over `accelerated`", "over the bound", "instances per job", "in deadline mode", "others over `fixed`")


@dataclass(frozen=True, slots=True)
class Variants:
    """Satisfies Section."""

    scenario: str
    seeds: Sequence[int]

    @property
    def name(self) -> str:
        return f"{self.scenario} variants"

    @property
    def after(self) -> str:
        return self.scenario

    @property
    def by_variant(self) -> dict[str, list[Case]]:
        return {name: cases_with(self.scenario, RULES, self.seeds, changes) for name, changes in VARIANTS.items()}

    @property
    def cases(self) -> list[Case]:
        return [case for cases in self.by_variant.values() for case in cases]

    def text(self, ran: Sequence[Ran], docs: Path) -> str:  # noqa: ARG002  it has no charts
        runs = iter(ran)
        found = {name: compared(cases, [next(runs) for _ in cases]) for name, cases in self.by_variant.items()}
        head = f"`{self.scenario}` with other losses and delay bounds, medians over {len(self.seeds)}:\n"
        return f"{head}\n{variants_table(self.scenario, found)}"


def variants_table(scenario: str, variants: Mapping[str, Comparison]) -> str:
    """A row for each: AFAP makespans of the rules, and what `muster` reached; limits that are missed are in bold."""
    lines = [f"| | `muster` | `accelerated` | `fixed` | bound | {' | '.join(COLUMNS)} |", f"|---|{9 * '---:|'}"]
    lines += [f"| {name} | {' | '.join(_cells(scenario, comparison))} |" for name, comparison in variants.items()]
    said = any(remark(comparison) for comparison in variants.values())
    return "\n".join([*lines, *(["", f"{NOT_OVER}."] if said else [])]) + "\n"


def _cells(scenario: str, comparison: Comparison) -> list[str]:
    rules = comparison.rules
    ours, limits = rules[MUSTER], limits_of(scenario)
    return [
        *(shown(one.afap_makespan_s, hours, more=QoS.AFAP in one.cut_short) for one in map(rules.__getitem__, RULES)),
        over(ours, rules[ACCELERATED], limits.over_accelerated),
        over(ours, rules[CLAIRVOYANT], limits.over_the_bound),
        told(ours.instances_per_job, number, MOST_INSTANCES),
        told(ours.deadline_mode_fraction, percent, MOST_DEADLINE_MODE),
        over(ours, rules[FIXED], MOST_OVER_FIXED, OTHERS),
    ]
