"""Settings in every combination of their values: what is to be run for them, and what it came to. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from domain.errors import InvalidInputError
from domain.settings import Settings
from simulator.frontier import Combination, Swept, Tried
from simulator.report import CLAIRVOYANT
from simulator.run import RULE, Case, Ran
from simulator.scenario import FileScenario
from simulator.sweep import cases_of, compared

MOST_COMBINATIONS = 500

Axis = tuple[str, Sequence[object]]  # a setting's key, and the values that are tried


def combinations(
    axes: Sequence[Axis], settings: Mapping[str, object], *, set_already: Collection[str] = ()
) -> list[Combination]:
    """Every combination; the values of the last key change first. Raises InvalidInputError.

    Each is tried on top of `settings`, so that what cannot be is told before anything is run. Keys of `set_already`
    have their value from somewhere else.

    >>> combinations([("deadline.p_afap", [0.5, 0.7]), ("deadline.p_late", [0.6])], {})
    [{'deadline.p_afap': 0.5, 'deadline.p_late': 0.6}, {'deadline.p_afap': 0.7, 'deadline.p_late': 0.6}]
    """
    keys = [key for key, _ in axes]
    for key, times in Counter(keys).items():
        if key == RULE:
            raise InvalidInputError("--sweep", f"settings other than {RULE}: --rule is for that", key)
        if times > 1:
            raise InvalidInputError("--sweep", "each setting once", key)
        if key in set_already:
            raise InvalidInputError("--sweep", "settings that --set does not give", key)
    many = math.prod(len(values) for _, values in axes)
    if many > MOST_COMBINATIONS:
        by = " x ".join(str(len(values)) for _, values in axes)
        raise InvalidInputError("--sweep", f"at most {MOST_COMBINATIONS} combinations", f"{by} = {many}")
    lists = [_checked(key, values) for key, values in axes]
    found = [dict(zip(keys, chosen, strict=True)) for chosen in product(*lists)]
    for one in found:
        Settings.from_mapping({**settings, **one})
    return list(found)


def _checked(key: str, values: Sequence[object]) -> list[object]:
    """The values as the setting has them."""
    if not values:
        raise InvalidInputError("--sweep", f"values of {key}", "none")
    found: list[object] = []
    for value in values:
        fit = Settings().changed(key, value).as_mapping()[key]
        if fit in found:
            raise InvalidInputError("--sweep", f"each value of {key} once", value)
        found.append(fit)
    return found


@dataclass(frozen=True, slots=True)
class Grid:
    """What is run: every rule with every seed in each combination, and the bound, which knows no settings, once."""

    combinations: Sequence[Combination]
    by_combination: Sequence[Sequence[Case]]
    bound: Sequence[Case]

    @property
    def cases(self) -> list[Case]:
        """One list, for whoever runs them."""
        return [*self.bound, *(case for cases in self.by_combination for case in cases)]

    @property
    def by_case(self) -> list[Combination]:
        """The combination of each of `cases`; the bound has none."""
        of_cases = zip(self.combinations, self.by_combination, strict=True)
        return [*({} for _ in self.bound), *(settings for settings, cases in of_cases for _ in cases)]

    def swept(self, ran: Sequence[Ran]) -> Swept:
        """What they came to, `ran` being of `cases`."""
        runs = iter(ran)
        of_bound = [next(runs) for _ in self.bound]
        tried = [
            Tried(settings, compared([*cases, *self.bound], [*(next(runs) for _ in cases), *of_bound]))
            for settings, cases in zip(self.combinations, self.by_combination, strict=True)
        ]
        one = tried[0].comparison
        return Swept(one.scenario, one.seeds, tried)


def grid_of(
    scenario: FileScenario,
    axes: Sequence[Axis],
    *,
    rules: Iterable[str],
    seeds: Iterable[int],
    settings: Mapping[str, object],
) -> Grid:
    """The settings of `axes` in every combination, over `settings`. Raises InvalidInputError."""
    asked, chosen = list(rules), list(seeds)
    by_settings = [rule for rule in asked if rule != CLAIRVOYANT]
    if not by_settings:
        raise InvalidInputError("--sweep", f"a --rule that goes by settings beside {CLAIRVOYANT}", asked)
    found = combinations(axes, {**scenario.settings, **settings}, set_already=settings.keys())
    every = [
        cases_of(scenario, rules=by_settings, seeds=chosen, settings={**settings, **combination})
        for combination in found
    ]
    return Grid(
        found,
        every,
        cases_of(scenario, rules=[rule for rule in asked if rule == CLAIRVOYANT], seeds=chosen, settings=settings),
    )
