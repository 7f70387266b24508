"""Shows all settings with unit, range, default and meaning; changes and resets them, recording author and reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from aiohttp import web

from administration.access.who import admit
from administration.names import checked_text
from administration.ordering.priorities import checked_setting
from administration.thresholds.in_force import lowered_gates, lowered_in_words
from administration.thresholds.keys import FORESEEN
from domain.access import Role
from domain.bounds import name_of_setting, written
from domain.errors import InvalidInputError
from domain.settings import Settings, meaning_of
from domain.views import SettingChange
from web.handlers import Pages, PageServices, fields_of, get, post, reason_of, typed
from web.moments import length, quantity
from web.rendering import Crumb, RenderedPage

CHANGES = 1000  # number of changes searched for each setting's latest one
TRAIL = 30
UNITS = {"_s": "seconds", "_bytes": "bytes", "_fraction": "a share", "_z": "z of the normal distribution"}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting with its current value."""

    key: str
    value: object
    default: object
    unit: str
    span: str  # the valid range, "" for none
    meaning: str
    last: SettingChange | None

    @property
    def readable(self) -> str:
        """Return long times and large byte counts in a larger unit, or "" if none is needed.

        >>> SettingRow("sweeper.every_s", 5400.0, 60.0, "seconds", "", "", None).readable
        '1\\xa0h\\xa030\\xa0min'
        """
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            return ""
        if self.unit == "seconds" and self.value >= 120.0:
            return length(self.value)
        return quantity(self.value, "B") if self.unit == "bytes" and self.value >= 1000.0 else ""

    @property
    def is_changed(self) -> bool:
        return self.value != self.default

    @property
    def kind(self) -> str:
        """Return the type of the form field."""
        return "bool" if isinstance(self.value, bool) else "number" if isinstance(self.value, (int, float)) else "text"


def unit_of(key: str, value: object) -> str:
    """Return a setting's unit, derived from its name.

    >>> unit_of("deadline.min_slack_s", 3600.0), unit_of("project.down", False), unit_of("feeder.slots", 1000)
    ('seconds', 'true or false', 'a whole number')
    >>> unit_of("server.host_requests_per_s", 2.0), unit_of("server.upload_bytes_per_s", 1000)
    ('requests a second', 'bytes a second')
    """
    if key.endswith("_per_s"):
        return f"{key.removesuffix('_per_s').rpartition('_')[2]} a second"
    for ending, unit in UNITS.items():
        if key.endswith(ending):
            return unit
    if isinstance(value, bool):
        return "true or false"
    return "a whole number" if isinstance(value, int) else "a number" if isinstance(value, float) else "text"


def rows_of(settings: Settings, changes: list[SettingChange]) -> list[SettingRow]:
    """Return one row per setting. `changes` must be newest first."""
    last: dict[str, SettingChange] = {}
    for change in changes:
        last.setdefault(change.key, change)
    values, defaults, spans = settings.as_mapping(), Settings().as_mapping(), spans_of(settings)
    return [
        SettingRow(
            key,
            value,
            defaults[key],
            unit_of(key, value),
            spans.get(key, ""),
            meaning_of(key),
            last.get(key),
        )
        for key, value in values.items()
    ]


def spans_of(settings: Settings) -> dict[str, str]:
    """Return the range of each setting that has one.

    >>> spans_of(Settings())["deadline.p_tight"]
    '0 to 1'
    """
    found = {}
    for section in fields(settings):
        for one in fields(type(getattr(settings, section.name))):
            meta: Mapping[str, Any] = one.metadata  # Any: metadata of a setting
            low, high = meta.get("low"), meta.get("high")
            if low is not None and high is not None:
                found[f"{section.name}.{one.name}"] = f"{written(low)} to {written(high)}"
    return found


class SettingPages(Pages[PageServices]):
    """Pages that show, change and reset settings."""

    @get("/settings", "settings", asks=("q",))
    async def show(self, request: web.Request) -> RenderedPage:
        text = checked_text(request.query.get("q", "").strip().lower(), "q")
        rows = await self._rows()
        chosen = [row for row in rows if text in row.key or text in row.meaning.lower()]
        sections: dict[str, list[SettingRow]] = {}
        for row in chosen:
            sections.setdefault(row.key.partition(".")[0], []).append(row)
        values: dict[str, object] = {
            "thresholds": FORESEEN,
            "settings": sections,
            "text": text,
            "trail": await self._services.store.settings.setting_changes(TRAIL),
            "in_force": self._in_force(),
            "unfit": self._services.catalogue.unfit_settings,
        }
        return RenderedPage("settings.html", "Settings", "settings", values=values)

    @get("/settings/{key}", "setting")
    async def one(self, request: web.Request) -> RenderedPage:
        key = request.match_info["key"]
        row = self._known(await self._rows(), key)
        changes = await self._services.store.settings.setting_changes(CHANGES)
        values: dict[str, object] = {
            "row": row,
            "in_force": self._in_force(),
            "trail": [change for change in changes if change.key == key],
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
            "has_preview": key in FORESEEN,
        }
        return RenderedPage("setting.html", key, "settings", (Crumb("settings", "Settings"),), values)

    @post("/settings/{key}", "setting_save", form="one", edits=True)
    async def save(self, request: web.Request) -> web.Response:
        """Save the value, or reset the setting to its default."""
        person = admit(request, Role.OPERATOR)
        key, form = request.match_info["key"], await fields_of(request)
        row = self._known(await self._rows(), key)
        why = reason_of(form)
        value: object = None
        if form.get("what") != "reset":
            given = typed(row.default, form.get("value", ""))
            value = await checked_setting(self._services.store.settings, key, given)
        await self._services.store.settings.set_setting(
            key, value, now=self._services.clock.now(), who=person.name, why=why
        )
        await self._services.authenticator.note(
            request, "set_setting", f"setting {key}", why=why, value=value, was=row.value
        )
        return self._services.go(f"settings/{key}", "setting" if value is not None else "reset")

    def _in_force(self) -> dict[str, str]:
        """Return the values of gates that are temporarily lowered, by setting."""
        return lowered_in_words(lowered_gates(self._services.catalogue, self._services.catalogue.current))

    async def _rows(self) -> list[SettingRow]:
        settings = await self._services.store.settings.in_force()
        return rows_of(settings, list(await self._services.store.settings.setting_changes(CHANGES)))

    def _known(self, rows: list[SettingRow], key: str) -> SettingRow:
        for row in rows:
            if row.key == key:
                return row
        raise InvalidInputError("key", name_of_setting(key, [row.key for row in rows]), key)
