"""Changed settings and who changed them, over a dictionary and a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.settings import Settings
from domain.units import Instant
from domain.views import SettingChange
from store.memory.registry import Registry


class MemorySettings:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def settings(self) -> Mapping[str, object]:
        return dict(sorted(self._registry.changed_settings.items()))

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        """Raises InvalidInputError when the key or the value is not one."""
        registry = self._registry
        changed = {name: known for name, known in registry.changed_settings.items() if name != key}
        if value is None:
            Settings().changed(key, Settings().as_mapping().get(key))
        else:
            changed[key] = value
        settings = Settings.from_mapping(changed)
        registry.setting_changes.append(SettingChange(key, registry.changed_settings.get(key), value, now, who, why))
        registry.changed_settings = changed
        registry.settings = settings

    async def setting_changes(self, limit: int) -> Sequence[SettingChange]:
        """Newest first."""
        return self._registry.setting_changes[: -limit - 1 : -1]
