"""Changed settings and who changed them, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.units import Instant
from domain.views import SettingChange
from store import rows
from store.pool import Connection, Database
from store.queries import load

LAST_ID = 2**62


class PostgresSettings:
    """Satisfies administration's SettingStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def settings(self) -> Mapping[str, object]:
        return {row["key"]: rows.decoded(row["value"]) for row in await self._database.fetch("list_settings")}

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        await self.set_settings({key: value}, now=now, who=who, why=why)

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        encoded = {key: None if value is None else rows.encoded(value) for key, value in values.items()}

        async def write(connection: Connection) -> None:
            for key, new in sorted(encoded.items()):  # in key order, so that two who change the same do not deadlock
                old = await connection.fetchval(load("lock_setting"), key)
                if new is None:
                    await connection.execute(load("delete_setting"), key)
                else:
                    await connection.execute(load("upsert_setting"), key, new)
                await connection.execute(load("insert_setting_change"), key, old, new, now, who, why)

        await self._database.in_transaction(write)

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        found = await self._database.fetch("list_setting_changes", limit, before or LAST_ID)
        return [rows.setting_change(row) for row in found]
