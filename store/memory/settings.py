"""Changed settings, the state of periodic tasks, process reports and requested simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.acceleration import Acceleration
from domain.ranking import RelaxedGate
from domain.units import Instant
from domain.views import SettingChange
from store.memory.work import OnTables


class MemorySettings(OnTables):
    async def settings(self) -> Mapping[str, object]:
        return dict(sorted(self._registry.changed_settings.items()))

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        await self.set_settings({key: value}, now=now, who=who, why=why)

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        registry = self._registry
        for key, value in sorted(values.items()):
            old = registry.changed_settings.pop(key, None)
            if value is not None:
                registry.changed_settings[key] = value
            change_id = len(registry.setting_changes) + 1
            registry.setting_changes.append(SettingChange(key, old, value, now, who, why, change_id))


class MemoryNotes(OnTables):
    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        del now  # when they were noted is asked by nobody here
        self._registry.relaxed_gates = tuple(gates)

    async def note_acceleration(self, acceleration: Acceleration) -> None:
        self._registry.acceleration = acceleration
