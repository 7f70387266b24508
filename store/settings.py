"""Stores changed settings with their authors, and task state that requests use: relaxed gates and acceleration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import msgspec

from domain.acceleration import Acceleration
from domain.apps import ProcessorType
from domain.deadline_rules import traits_of
from domain.forecasting import began_in_pause
from domain.ranking import CutPoints, RelaxedGate
from domain.settings import Settings
from domain.units import AppId, Instant
from domain.views import SettingChange
from store import rows
from store.pool import Connection, Database, OnDatabase
from store.queries import load
from store.rows import encoded

LAST_ID = 2**62
PAUSE, PAUSED = "project.down", rows.encoded(True)  # the setting, and its stored value during a pause
EDITS_AT_ONCE = 2  # per process: each holds a connection and needs another


class PostgresSettings(OnDatabase):
    """Stores changed settings and their audit trail."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._edits = asyncio.Semaphore(EDITS_AT_ONCE)

    async def settings(self) -> Mapping[str, object]:
        """Return only the changed settings, by key."""
        return {row["key"]: rows.decoded(row["value"]) for row in await self._database.fetch("list_settings")}

    async def in_force(self) -> Settings:
        """Return all settings. A stored value that is no longer valid has its default."""
        return Settings.from_stored(await self.settings())[0]

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        """Store and audit a setting in one transaction. None restores the default."""
        await self.set_settings({key: value}, now=now, who=who, why=why)

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        """Store several settings in one transaction. The end of a pause of the project moves active batches."""
        encoded = {key: None if value is None else rows.encoded(value) for key, value in values.items()}

        async def write(connection: Connection) -> None:
            pause = None
            for key, new in sorted(encoded.items()):  # in key order, so that concurrent changes do not deadlock
                old = await connection.fetchval(load("lock_setting"), key)
                if key == PAUSE and old == PAUSED != new:
                    pause = await connection.fetchrow(load("project_pause"))
                if new is None:
                    await connection.execute(load("delete_setting"), key)
                else:
                    await connection.execute(load("upsert_setting"), key, new)
                await connection.execute(load("insert_setting_change"), key, old, new, now, who, why)
            if pause is not None:
                since = began_in_pause(pause["changed_at"], now)
                await connection.execute(load("batches_resumed"), now, since, None, None)

        await self._database.in_transaction(write)

    @asynccontextmanager
    async def editing(self, *, alone: bool) -> AsyncIterator[None]:
        """Hold off edits that depend on the present state; with `alone`, all edits, in every process."""
        async with self._edits, self._database.transaction() as connection:
            await connection.execute(load("lock_edits_alone" if alone else "lock_edits"))
            yield

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        """Return the changes, newest first. `before` is the change_id at which a listing continues."""
        found = await self._database.fetch("list_setting_changes", limit, before or LAST_ID)
        return [rows.setting_change(row) for row in found]

    async def project_pause(self) -> SettingChange | None:
        """Return the last change of the pause, with the time when it began; None if the project is not paused."""
        row = await self._database.fetch_one("project_pause")
        return None if row is None else rows.setting_change(row)


Report = TypeVar("Report")

RELAXED_GATES = "relaxed gates"  # names of periodic tasks
ACCELERATION = "acceleration"


class PostgresNotes(OnDatabase):
    """Implements administration's GateNotes and jobs' AccelerationNotes."""

    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        await self._database.execute("note_report", RELAXED_GATES, now, encoded(tuple(gates)))

    async def note_acceleration(self, acceleration: Acceleration) -> None:
        await self._database.execute("note_report", ACCELERATION, acceleration.computed_at, encoded(acceleration))


async def read_report(connection: Connection, name: str, kind: type[Report]) -> Report | None:
    """Return a periodic task's latest report, None before the first."""
    text = await connection.fetchval(load("report_of_duty"), name)
    return None if text is None else msgspec.json.decode(text, type=kind)


def with_relaxed(
    cuts: Iterable[CutPoints], relaxed: Iterable[RelaxedGate]
) -> dict[tuple[AppId, ProcessorType], CutPoints]:
    """Return the cut points by (app, processor type), with their relaxed gates. Pure."""
    found = {(cut.app_id, cut.processor_type): cut for cut in cuts}
    gates: dict[tuple[AppId, ProcessorType], list[RelaxedGate]] = {}
    for gate in relaxed:
        gates.setdefault((gate.app_id, gate.processor_type), []).append(gate)
    return found | {
        of_type: replace(found[of_type], relaxed=tuple(some)) for of_type, some in gates.items() if of_type in found
    }


def is_accelerated(settings: Settings) -> bool:
    """Return whether requests use the acceleration flags. Pure."""
    return traits_of(settings.deadline).accelerates
