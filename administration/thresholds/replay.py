"""What would changed thresholds do to the work that waits now? The project simulated as it is and as it would be.

Both sides have the same computers, the same batches and the same seeds. Nothing of the project is changed. A replay is
prepared from the database, its cases are run wherever there is time for them (simulator/sweep.py), and what they came
to is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from administration.simulations.rules import as_result
from administration.thresholds.keys import Changes, with_changes
from administration.thresholds.recent import MOST_HOSTS, Recent, RecentStore, Sample, recent_project
from administration.thresholds.replayed import CHANGED, NOW, Change, Replayed
from domain.clock import Clock
from domain.settings import Settings
from simulator.report import RuleComparison
from simulator.run import RULE, Case, Ran
from simulator.sweep import compared

SOME_SEEDS = 3
SOME_HOSTS = 500
SOME_DAYS = 14.0
MOST_DAYS = 365.0

__all__ = ["MOST_DAYS", "MOST_HOSTS", "SOME_DAYS", "SOME_HOSTS", "SOME_SEEDS", "Replay", "replay"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What is to be run: `cases`, those of the project as it is first. Satisfies simulations.runs.Work."""

    asked: Mapping[str, object]
    sample: Sample
    changes: tuple[Change, ...]
    now: tuple[Case, ...]
    changed: tuple[Case, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return (*self.now, *self.changed)

    def replayed(self, ran: Sequence[Ran]) -> Replayed:
        """What the cases, run in their order, came to."""
        return Replayed.of(self.sample, self.changes, self._compared(ran))

    def result(self, ran: Sequence[Ran]) -> dict[str, object]:
        """The same for a page, and whole as `replayed`."""
        return {**as_result(self._compared(ran)), "replayed": self.replayed(ran).as_document()}

    def _compared(self, ran: Sequence[Ran]) -> RuleComparison:
        ran_now, ran_changed = ran[: len(self.now)], ran[len(self.now) :]
        sides = {NOW: compared(self.now, ran_now), CHANGED: compared(self.changed, ran_changed)}
        figures = {name: next(iter(side.rules.values())) for name, side in sides.items()}
        ends = {name: one for name, side in sides.items() for one in side.ends.values()}
        return RuleComparison(self.cases[0].scenario.name, len(self.now), figures, ends)


async def replay(
    store: RecentStore, clock: Clock, changes: Changes, *, seeds: Sequence[int], most_hosts: int, days: float
) -> Replay:
    """Prepare it. Raises InvalidInputError when no computer called lately, or nothing waits."""
    recent = await recent_project(store, clock, most_hosts=most_hosts, days=days)
    before = recent.catalogue.settings
    return Replay(
        {
            "scenario": recent.scenario.name,
            "rules": [NOW, CHANGED],
            "seeds": len(seeds),
            "changes": dict(changes),
            "hosts": most_hosts,
            "days": days,
        },
        recent.sample,
        tuple((key, before.as_mapping()[key], value) for key, value in changes.items()),
        _cases(recent, seeds, before, {}),
        _cases(recent, seeds, with_changes(before, changes), changes),
    )


def _cases(recent: Recent, seeds: Sequence[int], settings: Settings, changes: Changes) -> tuple[Case, ...]:
    others = {key: value for key, value in changes.items() if key != RULE}
    return tuple(Case(recent.scenario, seed, str(settings.deadline.rule), others) for seed in seeds)
