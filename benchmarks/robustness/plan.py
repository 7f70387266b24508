"""Lists the runs that a comparison needs: populations x seeds x contestants. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from domain.deadline_rules import CLAIRVOYANT, FIXED_COPIES
from domain.errors import InvalidInputError
from domain.settings import Settings
from simulator.robustness import DRAWN
from simulator.run import RULE, Case, checked_rule
from simulator.scenario import read_scenario
from simulator.sweep import cases_of

MUSTER, ACCELERATED, FIXED = "muster", "accelerated", "fixed"
USUAL_RULES = (MUSTER, ACCELERATED, FIXED, FIXED_COPIES)
HALVES: Mapping[str, Sequence[int]] = {"tuning": range(1, 25, 2), "unseen": range(2, 26, 2)}
QUICK = 6  # number of populations that cover every range (simulator/robustness.py)
SEEDS = 2


@dataclass(frozen=True, slots=True)
class Contestant:
    """A rule with settings, and the name of its column group in the table."""

    name: str
    rule: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planned:
    """A case and its population, seed and contestant."""

    population: int
    seed: int
    contestant: Contestant
    case: Case


REFERENCES = (Contestant(ACCELERATED, ACCELERATED), Contestant(CLAIRVOYANT, CLAIRVOYANT))


def contestants_of(
    rules: Iterable[str], settings: Mapping[str, object], variants: Mapping[str, Mapping[str, object]]
) -> list[Contestant]:
    """Return the rules, `muster` with `settings`, and `muster` again with each variant on top of `settings`.

    `accelerated` and the bound, by whose figures all others are divided, are appended unless in `rules`. Raises
    InvalidInputError for an unknown rule or an invalid setting.
    """
    named = [Contestant(rule, checked_rule(rule), settings if rule == MUSTER else {}) for rule in dict.fromkeys(rules)]
    more = [Contestant(name, MUSTER, {**settings, **changes}) for name, changes in variants.items()]
    taken = {one.name for one in named}
    every = [*named, *more, *(one for one in REFERENCES if one.name not in taken)]
    for one in more:
        if one.name in {*taken, *(reference.name for reference in REFERENCES)}:
            raise InvalidInputError("--variant", "a name that is not a rule", one.name)
    for one in every:
        if RULE in one.settings:
            raise InvalidInputError("--set", f"settings other than {RULE}; use --rules for it", one.settings[RULE])
        Settings.from_mapping(one.settings)
    return every


def plan_of(populations: Iterable[int], contestants: Sequence[Contestant], seeds: Sequence[int]) -> list[Planned]:
    """Return the plan in order of population, so that a comparison that is stopped has complete populations."""
    planned: list[Planned] = []
    for number in populations:
        scenario = read_scenario(f"{DRAWN}:{number}")
        for seed in seeds:
            for one in contestants:
                (case,) = cases_of(scenario, rules=(one.rule,), seeds=(seed,), settings=one.settings)
                planned.append(Planned(number, seed, one, case))
    return planned
