"""What would changed thresholds do to the work that waits now? The project simulated as it is and as it would be.

Both sides have the same computers, the same batches and the same seeds. Nothing of the project is changed. A replay is
prepared from the database, its cases are run wherever there is time for them (simulator/sweep.py), and what they came
to is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.clock import Clock
from domain.settings import Settings
from operations.thresholds.keys import Changes, with_changes
from operations.thresholds.recent import MOST_HOSTS, Recent, RecentStore, recent_project
from simulator.report import Comparison
from simulator.run import RULE, Case, Ran
from simulator.sweep import compared

NOW, CHANGED = "as it is", "as changed"
SOME_HOSTS = 500
SOME_DAYS = 14.0

__all__ = ["MOST_HOSTS", "SOME_DAYS", "SOME_HOSTS", "Replay", "Replayed", "replay"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What is to be run: `cases`, those of the project as it is first."""

    recent: Recent
    changes: tuple[tuple[str, object, object], ...]  # key, from, to
    now: tuple[Case, ...]
    changed: tuple[Case, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return (*self.now, *self.changed)

    def replayed(self, ran: Sequence[Ran]) -> Replayed:
        """What the cases, run in their order, came to."""
        ran_now, ran_changed = ran[: len(self.now)], ran[len(self.now) :]
        sides = {NOW: compared(self.now, ran_now), CHANGED: compared(self.changed, ran_changed)}
        figures = {name: next(iter(side.rules.values())) for name, side in sides.items()}
        ends = {name: one for name, side in sides.items() for one in side.ends.values()}
        return Replayed(self.recent, self.changes, Comparison("recent", len(self.now), figures, ends))


@dataclass(frozen=True, slots=True)
class Replayed:
    """Both sides' figures, medians over seeds."""

    recent: Recent
    changes: tuple[tuple[str, object, object], ...]
    comparison: Comparison

    def as_json(self) -> dict[str, object]:
        """`now` and `changed` have the figures of `muster simulate`."""
        rules = self.comparison.as_json()["rules"]
        assert isinstance(rules, dict)
        return {
            "changes": [{"key": key, "from": before, "to": after} for key, before, after in self.changes],
            "population": self.recent.as_json(),
            "seeds": self.comparison.seeds,
            "now": rules[NOW],
            "changed": rules[CHANGED],
        }


async def replay(
    store: RecentStore, clock: Clock, changes: Changes, *, seeds: Sequence[int], most_hosts: int, days: float
) -> Replay:
    """Prepare it. Raises InvalidInputError when no computer called lately, or nothing waits."""
    recent = await recent_project(store, clock, most_hosts=most_hosts, days=days)
    before = recent.catalogue.settings
    return Replay(
        recent,
        tuple((key, before.as_mapping()[key], value) for key, value in changes.items()),
        _cases(recent, seeds, before, {}),
        _cases(recent, seeds, with_changes(before, changes), changes),
    )


def _cases(recent: Recent, seeds: Sequence[int], settings: Settings, changes: Changes) -> tuple[Case, ...]:
    others = {key: value for key, value in changes.items() if key != RULE}
    return tuple(Case(recent.scenario, seed, str(settings.deadline.rule), others) for seed in seeds)
