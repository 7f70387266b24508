"""Compares deadline rules on a shipped scenario: validates the request and builds the result.

Functions import the simulator when called, so that serving processes and commands start faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from domain.deadline_rules import SIMULATED_RULES
from domain.errors import InvalidInputError
from domain.settings import DeadlineRule

if TYPE_CHECKING:
    from simulator.report import RuleComparison
    from simulator.run import Case, Ran

MOST_SEEDS = 10
MOST_HOSTS = 5000
MOST_DAYS = 120.0
POINTS = 200  # points per curve
DEFAULT_RULES = (DeadlineRule.MUSTER, DeadlineRule.FIXED)


class RequestedComparison(msgspec.Struct, forbid_unknown_fields=True):
    """A comparison requested on a page. `changes` are values in the scenario file by path."""

    scenario: str
    rules: list[str]
    seeds: int = 1
    changes: dict[str, float | str] = {}


@dataclass(frozen=True, slots=True)
class RulesCompared:
    """Implements administration.simulations.runs.RequestedRun."""

    asked: Mapping[str, object]
    cases: Sequence[Case]

    def result(self, ran: Sequence[Ran]) -> dict[str, object]:
        from simulator.sweep import compared  # noqa: PLC0415

        return as_result(compared(self.cases, ran))


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices on a page: `scenarios` by name with descriptions; `computers` are populations."""

    scenarios: Mapping[str, str]
    rules: Sequence[str]
    computers: Sequence[str]


def choices() -> Choices:
    """Return the choices. Scenarios are the shipped ones, smallest first."""
    from simulator.host_models import FITTED  # noqa: PLC0415
    from simulator.scenario import SHIPPED  # noqa: PLC0415

    files = {path.stem: path for path in SHIPPED.glob("*.toml")}
    names = sorted(files, key=lambda name: (name == "large", name != "small", name))
    return Choices({name: _about(files[name]) for name in names}, SIMULATED_RULES, sorted(FITTED))


def _about(file: Path) -> str:
    """Return a shipped scenario's description, its first comment."""
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def checked(request: RequestedComparison) -> RulesCompared:
    """Return the runs of a request. Raises InvalidInputError naming the field. Reads only shipped files."""
    from simulator.run import checked_rule  # noqa: PLC0415
    from simulator.scenario import read_scenario  # noqa: PLC0415
    from simulator.sweep import cases_of  # noqa: PLC0415

    scenarios = choices().scenarios
    if request.scenario not in scenarios:
        raise InvalidInputError("scenario", "one of " + ", ".join(scenarios), request.scenario)
    if not 1 <= request.seeds <= MOST_SEEDS:
        raise InvalidInputError("seeds", f"a whole number from 1 to {MOST_SEEDS}", request.seeds)
    if not request.rules or len(set(request.rules)) != len(request.rules):
        raise InvalidInputError("rules", "at least one rule, each once", request.rules)
    rules = [checked_rule(rule) for rule in request.rules]
    for path, most in (("population.hosts", MOST_HOSTS), ("days", MOST_DAYS)):
        value = request.changes.get(path)
        if isinstance(value, (int, float)) and value > most:
            raise InvalidInputError(path, f"at most {most:g} here; `muster simulate` takes more", value)
    scenario = read_scenario(request.scenario, dict(request.changes))
    cases = cases_of(scenario, rules=rules, seeds=range(1, request.seeds + 1), settings={})
    return RulesCompared(msgspec.to_builtins(request), cases)


def as_result(comparison: RuleComparison) -> dict[str, object]:
    """Return the figures, the table rows, and the curves of urgent batches."""
    from simulator.report import rows_of  # noqa: PLC0415

    return {
        **comparison.as_json(),
        "rows": rows_of(comparison),
        "curves": {rule: curve(one.ends_s, one.jobs) for rule, one in comparison.ends.items()},
    }


def curve(ends_s: tuple[float, ...], jobs: int) -> list[tuple[float, float]]:
    """Return pairs of hours since submission and the share of jobs ended by then, thinned out.

    >>> curve((7200.0, 3600.0), 4)
    [(0.0, 0.0), (1.0, 0.25), (2.0, 0.5)]
    """
    ordered = sorted(ends_s)
    points = [(0.0, 0.0), *((end_s / 3600.0, (n + 1) / jobs) for n, end_s in enumerate(ordered))]
    step = max(1, len(points) // POINTS)
    return [*points[:-1:step], points[-1]] if len(points) > 1 else points
