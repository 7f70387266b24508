"""A scenario's frontier: thresholds in every combination, which of them no other beats, and the limits among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from benchmarks.policy_quality.limits import MOST_DEADLINE_MODE, MOST_INSTANCES, limits_of
from benchmarks.policy_quality.sections import ACCELERATED, MUSTER, SCENARIOS, cases_with, pictures
from domain.batches import QoS
from domain.settings import Settings
from domain.units import Seconds
from simulator import frontier_chart
from simulator.frontier import Swept, frontier
from simulator.frontier_report import markdown_of, numbered
from simulator.grid import Axis, Grid, grid_of
from simulator.metrics import Figures
from simulator.report import CLAIRVOYANT
from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.sweep import compared

# What is swept: who hurries, how much, and how many copies there may be. The defaults are among the values.
USUAL: Sequence[Axis] = (
    ("deadline.p_afap", (0.5, 0.65, 0.8)),
    ("deadline.afap_due_factor", (1.0, 1.1, 1.3)),
    ("lifecycle.tail_overhead_fraction", (0.1, 0.25)),
)
GRIDS: Mapping[str, Sequence[Axis]] = {  # a run takes half a minute, of `large` ten minutes
    "department": (
        ("deadline.p_afap", (0.5, 0.8)),
        ("deadline.afap_due_factor", (1.0, 1.1, 1.3)),
        ("lifecycle.tail_overhead_fraction", (0.1, 0.25)),
    ),
    "large": (("deadline.p_afap", (0.5, 0.8)), ("deadline.afap_due_factor", (1.0, 1.1, 1.3))),
}


@dataclass(frozen=True, slots=True)
class Frontier:
    """Satisfies Section."""

    scenario: str
    seeds: Sequence[int]

    @property
    def name(self) -> str:
        return f"{self.scenario} frontier"

    @property
    def after(self) -> str:
        place = SCENARIOS.index(self.scenario) if self.scenario in SCENARIOS else 0
        return f"{SCENARIOS[place - 1]} frontier" if place else ""

    @property
    def grid(self) -> Grid:
        return grid_of(
            read_scenario(self.scenario),
            GRIDS.get(self.scenario, USUAL),
            rules=(MUSTER, CLAIRVOYANT),
            seeds=self.seeds,
            settings={},
        )

    @property
    def compared_with(self) -> list[Case]:
        """Whose makespan the limit is told of."""
        return cases_with(self.scenario, (ACCELERATED,), self.seeds)

    @property
    def cases(self) -> list[Case]:
        return [*self.grid.cases, *self.compared_with]

    def text(self, ran: Sequence[Ran], docs: Path) -> str:
        grid, others = self.grid, self.compared_with
        swept = grid.swept(ran[: len(grid.cases)])
        accelerated = compared(others, ran[len(grid.cases) :]).rules[ACCELERATED]
        lines = chart_limits(self.scenario, accelerated, swept.tried[0].comparison.rules[CLAIRVOYANT])
        parts = [
            f"### {self.scenario}: thresholds\n",
            f"{len(swept.tried)} combinations, medians over {len(self.seeds)}. {remarks(swept, lines)}\n",
            markdown_of(swept, MUSTER),
            pictures(frontier_chart.write_frontier_charts(swept, docs / "charts", lines)),
        ]
        return "\n".join(parts)


def chart_limits(scenario: str, accelerated: Figures, bound: Figures) -> frontier_chart.Limits:
    """A line for each limit of AFAP makespans that is known, and for each price that has one."""
    limits = limits_of(scenario)
    of = {
        f"{limits.over_accelerated:.2f} of accelerated": (accelerated.afap_makespan_s, limits.over_accelerated),
        f"{limits.over_the_bound:.1f} times the bound": (bound.afap_makespan_s, limits.over_the_bound),
    }
    return frontier_chart.Limits(
        {name: Seconds(span_s * factor) for name, (span_s, factor) in of.items() if span_s is not None},
        {"instances_per_job": MOST_INSTANCES, "deadline_mode_fraction": MOST_DEADLINE_MODE},
    )


def remarks(swept: Swept, limits: frontier_chart.Limits) -> str:
    """In which rows the defaults are, and which keep which limits."""
    figures = swept.figures(MUSTER)
    cheap = {place for place, one in enumerate(figures) if _keeps(one, limits.prices)}
    told = [f"The defaults are row {_rows(swept, defaults(swept))}."]
    told.append(
        f"At most {MOST_INSTANCES} instances per job and {100 * MOST_DEADLINE_MODE:g} % in deadline mode: "
        f"{len(cheap)} of {len(figures)} rows."
    )
    for name, most_s in limits.makespans_s.items():
        quick = {place for place in cheap if _is_within(figures[place], most_s)}
        told.append(f"Of these at most {name}: {len(quick) or 'none'}{_marked(swept, quick)}.")
    return " ".join(told)


def _marked(swept: Swept, places: Set[int]) -> str:
    """Those of them that are on the frontier, if any."""
    found = places & frontier(swept.figures(MUSTER))
    return f", on the frontier {_rows(swept, found)}" if found else ""


def defaults(swept: Swept) -> set[int]:
    """The places of the combinations that are the settings' defaults."""
    known = Settings().as_mapping()
    return {
        place
        for place, one in enumerate(swept.tried)
        if all(known[key] == value for key, value in one.settings.items())
    }


def _keeps(figures: Figures, prices: Mapping[str, float]) -> bool:
    return all((value := getattr(figures, name)) is not None and value <= most for name, most in prices.items())


def _is_within(figures: Figures, most_s: float) -> bool:
    span_s = figures.afap_makespan_s
    return span_s is not None and span_s <= most_s and QoS.AFAP not in figures.cut_short


def _rows(swept: Swept, places: Iterable[int]) -> str:
    marked = frontier(swept.figures(MUSTER))
    return ", ".join(numbered(place, marked).strip() for place in sorted(places)) or "none"
