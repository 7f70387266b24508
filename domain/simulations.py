"""A simulation that somebody asked for at the console. Values only. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.units import Instant, Seconds

SILENT_S = Seconds(60.0)  # a process that runs one is heard from every second or so


class SimulationState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Simulation:
    """`asked` says what is run, `result` is the comparison of rules once it is done, `failure` why it is not."""

    simulation_id: int
    asked_at: Instant
    asked_by: str
    asked: Mapping[str, object]
    state: SimulationState
    heard_at: Instant
    done_fraction: float
    result: Mapping[str, object] | None = None
    failure: str | None = None

    def is_lost(self, now: Instant) -> bool:
        """Whether the process that ran it is gone."""
        return self.state is SimulationState.RUNNING and now - self.heard_at > SILENT_S
