"""How good are the policies? Rules compared on the shipped scenarios, with losses and delay bounds about them.

    python -m benchmarks.policy_quality --seeds 5 --processes 2
    python -m benchmarks.policy_quality --seeds 3 --scenario large --plain --without proposal

Writes a section for each scenario into docs/policy-quality.md, between its marks, and charts into docs/charts: limits
and what was reached, every figure, and the same with other losses and delay bounds. Nothing else of the page changes.
`--json` prints one object with the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.batches import QoS
from domain.units import HOUR_S, Instant
from operations.simulating import duties
from simulator.charts import write_charts
from simulator.metrics import Figure
from simulator.report import CLAIRVOYANT, Comparison, hours, markdown_of, number, percent
from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.sweep import cases_of, compared, run_here, run_on_processes

DOCS = Path(__file__).parents[1] / "docs"
MUSTER, ACCELERATED, FIXED = "muster", "accelerated", "fixed"
RULES = (MUSTER, ACCELERATED, FIXED, "proposal", CLAIRVOYANT)
FEWER_RULES = (MUSTER, ACCELERATED, FIXED, CLAIRVOYANT)  # for variants
PLAIN = "loss 5 %, bound 7 days"
VARIANTS: Mapping[str, Mapping[str, object]] = {
    PLAIN: {},
    "loss 2 %": {"population.loss_fraction": 0.02},
    "loss 10 %": {"population.loss_fraction": 0.10},
    "bound 2 days": {"delay_bound_days": 2},
    "bound 14 days": {"delay_bound_days": 14, "days": 60},  # long enough for who loses a job twice
}
SMALL_LIMITS = {"over accelerated": 0.90, "over the bound": 2.5}
LIMITS = {"over accelerated": 0.50, "over the bound": 2.0}
MOST_INSTANCES, MOST_DEADLINE_MODE, MOST_OVER_FIXED = 1.25, 0.10, 1.05


@dataclass(frozen=True, slots=True)
class Study:
    """A scenario's runs: by variant its cases, the plain one first."""

    scenario: str
    cases: Mapping[str, Sequence[Case]]


@dataclass(frozen=True, slots=True)
class Studied:
    """What they came to, and by rule the AFAP makespan of each seed of the plain variant, in seconds."""

    scenario: str
    variants: Mapping[str, Comparison]
    by_seed: Mapping[str, Sequence[Figure]]

    @property
    def plain(self) -> Comparison:
        return self.variants[PLAIN]

    def as_json(self) -> dict[str, object]:
        return {name: comparison.as_json() for name, comparison in self.variants.items()}


def study_of(scenario: str, seeds: Sequence[int], variants: Iterable[str], without: Collection[str] = ()) -> Study:
    return Study(
        scenario,
        {
            name: cases_of(
                read_scenario(scenario, VARIANTS[name]),
                rules=[rule for rule in (RULES if name == PLAIN else FEWER_RULES) if rule not in without],
                seeds=seeds,
                settings={},
            )
            for name in variants
        },
    )


def studied(study: Study, ran: Iterator[Ran]) -> Studied:
    """Takes as many runs as the study has cases, in their order."""
    made = {name: [next(ran) for _ in cases] for name, cases in study.cases.items()}
    by_seed: dict[str, list[Figure]] = {}
    for case, one in zip(study.cases[PLAIN], made[PLAIN], strict=True):
        by_seed.setdefault(case.rule, []).append(one.figures.afap_makespan_s)
    return Studied(study.scenario, {name: compared(cases, made[name]) for name, cases in study.cases.items()}, by_seed)


# ------------------------------------------------------------ the page


def ratio(value: Figure, base: Figure) -> Figure:
    """None where either is not known, or nothing is to be divided by.

    >>> ratio(3.0, 2.0), ratio(None, 2.0), ratio(3.0, 0.0)
    (1.5, None, None)
    """
    return value / base if value is not None and base else None


Goal = tuple[str, Figure, float, Callable[[float], str]]  # what, reached, the limit, how it is told


def goals_of(scenario: str, plain: Comparison) -> list[Goal]:
    """What was asked of `muster`, and what it reached on a scenario."""
    rules = plain.rules
    ours = rules[MUSTER]
    limits = SMALL_LIMITS if scenario == "small" else LIMITS
    fixed = rules[FIXED].makespan_s or {}
    goals: list[Goal] = [
        (
            "AFAP makespan over `accelerated`",
            ratio(ours.afap_makespan_s, rules[ACCELERATED].afap_makespan_s),
            limits["over accelerated"],
            number,
        ),
        (
            "AFAP makespan over the clairvoyant bound",
            ratio(ours.afap_makespan_s, rules[CLAIRVOYANT].afap_makespan_s),
            limits["over the bound"],
            number,
        ),
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
    for name, reached, limit, spoken in goals:
        assert reached is not None
        told = spoken(reached)
        lines.append(f"| {name} | {told if reached <= limit else f'**{told}**'} | {spoken(limit)} |")
    return "\n".join(lines) + "\n"


def variants_table(variants: Mapping[str, Comparison]) -> str:
    """A row for each variant: AFAP makespans of the rules, and what `muster` reached."""
    columns = ("over `accelerated`", "over the bound", "instances per job", "in deadline mode", "others over `fixed`")
    lines = [f"| | `muster` | `accelerated` | `fixed` | bound | {' | '.join(columns)} |", f"|---|{9 * '---:|'}"]
    for name, comparison in variants.items():
        rules = comparison.rules
        ours = rules[MUSTER]
        spans = {rule: rules[rule].afap_makespan_s for rule in FEWER_RULES}
        cells = [
            *(_told(spans[rule], hours) for rule in FEWER_RULES),
            _told(ratio(spans[MUSTER], spans[ACCELERATED]), number),
            _told(ratio(spans[MUSTER], spans[CLAIRVOYANT]), number),
            _told(ours.instances_per_job, number),
            _told(ours.deadline_mode_fraction, percent),
            _told(ratio(ours.other_makespan_s, rules[FIXED].other_makespan_s), number),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _told(value: Figure, spoken: Callable[[float], str]) -> str:
    return "" if value is None else spoken(value)


def section_of(one: Studied, charts: Sequence[str]) -> str:
    """A scenario's part of the page."""
    plain = one.plain
    seeds = "; ".join(f"`{rule}` {_hours_of(values)}" for rule, values in one.by_seed.items())
    parts = [
        f"### {one.scenario}\n",
        goals_table(goals_of(one.scenario, plain)),
        f"AFAP makespans by seed, in hours: {seeds}.\n",
        markdown_of(plain),
        "\n".join(f"![{one.scenario}: {Path(path).stem.rpartition('-')[2]}]({path})" for path in charts) + "\n",
    ]
    if len(one.variants) > 1:
        parts += [f"With other losses and delay bounds, medians over {plain.seeds}:\n", variants_table(one.variants)]
    return "\n".join(parts)


def _hours_of(values: Iterable[Figure]) -> str:
    return ", ".join("-" if value is None else f"{value / HOUR_S:.0f}" for value in values)


def with_section(page: str, scenario: str, section: str) -> str:
    """The page with what stands between a scenario's marks replaced; marks it does not have are put at its end.

    >>> page = "a\\n<!-- measured: x -->\\nold\\n<!-- end: x -->\\nb\\n"
    >>> with_section(page, "x", "new\\n") == page.replace("old", "new")
    True
    """
    begin, end = f"<!-- measured: {scenario} -->\n", f"<!-- end: {scenario} -->\n"
    if begin not in page or end not in page:
        return f"{page.rstrip()}\n\n{begin}{section}{end}"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}{section}{end}{rest.partition(end)[2]}"


# ------------------------------------------------------------ the command


class Told:
    """Satisfies simulator.sweep.Watching: a line on standard error for each run that is over."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._over = 0

    def moved(self, place: int, at: Instant) -> None:
        """Only ends are told."""

    def over(self, place: int) -> None:
        self._over += 1
        case = self._cases[place]
        told = f"{case.scenario.name}, {case.rule}, seed {case.seed}"
        print(f"{self._over} of {len(self._cases)} runs: {told}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", action="append", help="may be repeated; small and department by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="without other losses and delay bounds")
    parser.add_argument("--without", action="append", default=[], choices=["proposal"], help="a rule that is left out")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of policy-quality.md")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    variants = [PLAIN] if asked.plain else list(VARIANTS)
    studies = [
        study_of(name, range(1, asked.seeds + 1), variants, asked.without)
        for name in asked.scenario or ("small", "department")
    ]
    cases = [case for study in studies for of_variant in study.cases.values() for case in of_variant]
    if asked.processes == 1:
        ran = run_here(cases, duties, Told(cases))
    else:
        ran = run_on_processes(cases, duties, Told(cases), processes=asked.processes)
    runs = iter(ran)
    every = [studied(study, runs) for study in studies]
    page = asked.docs / "policy-quality.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else "# How good the policies are\n"
    for one in every:
        charts = write_charts(one.plain, asked.docs / "charts")
        text = with_section(text, one.scenario, section_of(one, [f"charts/{path.name}" for path in charts]))
    page.write_text(text, encoding="utf-8")
    if asked.json:
        print(json.dumps({one.scenario: one.as_json() for one in every}))


if __name__ == "__main__":
    main()
