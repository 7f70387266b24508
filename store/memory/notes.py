"""What background duties found and requests go by, over the registry."""

from __future__ import annotations

from collections.abc import Sequence

from domain.acceleration import Acceleration
from domain.ranking import RelaxedGate
from domain.units import Instant
from store.memory.registry import Registry


class MemoryNotes:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        del now  # when they were noted is asked by nobody here
        self._registry.relaxed_gates = tuple(gates)

    async def note_acceleration(self, acceleration: Acceleration) -> None:
        self._registry.acceleration = acceleration
