"""Changed settings and who changed them, over a dictionary and a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.units import Instant
from domain.views import SettingChange
from store.memory.registry import Registry


class MemorySettings:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

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
            registry.setting_changes.append(SettingChange(key, old, value, now, who, why))

    async def setting_changes(self, limit: int) -> Sequence[SettingChange]:
        """Newest first."""
        return self._registry.setting_changes[: -limit - 1 : -1]
