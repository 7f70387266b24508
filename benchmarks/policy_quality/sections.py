"""Sections of the page: what each runs, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.sweep import cases_of

MUSTER, ACCELERATED, FIXED, PROPOSAL = "muster", "accelerated", "fixed", "proposal"
SCENARIOS = ("small", "department", "large")
SEEDS: Mapping[str, int] = {"large": 3}  # the others have
USUAL_SEEDS = 5


class Section(Protocol):
    """What stands between two marks."""

    @property
    def name(self) -> str:
        """Of its marks."""
        ...

    @property
    def after(self) -> str:
        """The section behind which it is put where the page has no marks for it."""
        ...

    @property
    def cases(self) -> Sequence[Case]: ...

    def text(self, ran: Sequence[Ran], docs: Path) -> str:
        """Of what its cases came to; charts are written into a folder of `docs`."""
        ...


def seeds_of(scenario: str, seeds: int | None) -> range:
    """The first so many; as many as the page has of the scenario where nobody says otherwise."""
    return range(1, (SEEDS.get(scenario, USUAL_SEEDS) if seeds is None else seeds) + 1)


def cases_with(
    scenario: str, rules: Iterable[str], seeds: Sequence[int], changes: Mapping[str, object] | None = None
) -> list[Case]:
    """With values of the scenario's file changed."""
    return cases_of(read_scenario(scenario, changes or {}), rules=rules, seeds=seeds, settings={})


def pictures(paths: Iterable[Path]) -> str:
    """As they stand in a page beside their folder."""
    return "".join(
        f"![{path.stem.partition('-')[0]}: {path.stem.partition('-')[2]}]({path.parent.name}/{path.name})\n"
        for path in paths
    )
