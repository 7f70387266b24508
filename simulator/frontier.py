"""What each combination of settings came to, and which of them no other beats. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.batches import QoS
from simulator.metrics import Figures
from simulator.report import CLAIRVOYANT, Comparison

Combination = Mapping[str, object]  # values of settings by key


@dataclass(frozen=True, slots=True)
class Tried:
    """A combination, and what rules came to with it."""

    settings: Combination
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Swept:
    """All combinations, in the order of their values."""

    scenario: str
    seeds: int
    tried: Sequence[Tried]

    @property
    def rules(self) -> list[str]:
        """Those that go by settings, in the order they were asked for."""
        return [rule for rule in self.tried[0].comparison.rules if rule != CLAIRVOYANT]

    def figures(self, rule: str) -> list[Figures]:
        """By combination."""
        return [one.comparison.rules[rule] for one in self.tried]

    def as_json(self) -> dict[str, object]:
        """The object a command prints last. `frontier` is told of the first rule."""
        marked = frontier(self.figures(self.rules[0]))
        return {
            "scenario": self.scenario,
            "seeds": self.seeds,
            "sweep": [
                {
                    "settings": dict(one.settings),
                    "rules": one.comparison.as_json()["rules"],
                    "frontier": place in marked,
                }
                for place, one in enumerate(self.tried)
            ],
        }


def frontier(every: Sequence[Figures]) -> set[int]:
    """The places of those that no other beats: one as quick with AFAP batches, as cheap in instances and as rarely in
    deadline mode, and better in one of these. Whoever lacks one of the three is not among them. What is not over at the
    end is slower than all that is.

    >>> quick, cheap, both, beaten = (1.0, 9.0), (9.0, 1.0), (2.0, 2.0), (2.0, 9.5)
    >>> sorted(frontier([
    ...     Figures(afap_makespan_s=makespan_s, instances_per_job=price, deadline_mode_fraction=0.1)
    ...     for makespan_s, price in (quick, cheap, both, beaten)
    ... ]))
    [0, 1, 2]
    """
    costs = [_costs(one) for one in every]
    known = [one for one in costs if one is not None]
    return {
        place for place, one in enumerate(costs) if one is not None and not any(_beats(other, one) for other in known)
    }


def _costs(figures: Figures) -> tuple[float, ...] | None:
    span_s = math.inf if QoS.AFAP in figures.cut_short else figures.afap_makespan_s
    found = (span_s, figures.instances_per_job, figures.deadline_mode_fraction)
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))
