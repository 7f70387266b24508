"""What simulations in the background need from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.units import Instant
from domain.views import Simulation, SimulationState


class Simulations(Protocol):
    """Simulations that were asked for at the console or over the API."""

    async def add(
        self, asked: Mapping[str, object], *, who: str, now: Instant, heard_since: Instant, most: int
    ) -> int | None:
        """Its id; None where `most` are under way that were heard from since."""
        ...

    async def note(self, simulation_id: int, done_fraction: float, *, now: Instant) -> bool:
        """False when it is not under way any more: it was cancelled."""
        ...

    async def end(
        self,
        simulation_id: int,
        state: SimulationState,
        *,
        now: Instant,
        result: Mapping[str, object] | None = None,
        failure: str | None = None,
    ) -> bool:
        """False when it is not under way any more."""
        ...

    async def simulations(self, limit: int) -> Sequence[Simulation]:
        """Newest first, without their results."""
        ...

    async def simulation(self, simulation_id: int) -> Simulation:
        """Raises NotFoundError."""
        ...
