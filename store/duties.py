"""Which background duties does this process do? Those whose session lock it holds; each once per cluster."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from domain.errors import UnavailableError
from domain.units import Instant
from store.pool import CLOSE_S, LOST, Database, lost_means_unavailable
from store.queries import load
from store.watched import WatchedConnection, connect_watched


class DutyLocks:
    """Session locks on one connection of its own; when it drops, all duties are lost and others take over."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: WatchedConnection | None = None
        self._held: set[str] = set()
        self._turn = asyncio.Lock()

    async def mine(self, duty: str) -> bool:
        """Whether this process does the duty now: it holds its lock, or has just taken it.

        Raises UnavailableError while the database is away; every lock is then given up.
        """
        async with self._turn:
            try:
                with lost_means_unavailable():
                    return await self._mine(duty)
            except UnavailableError:
                await self.close()
                raise

    async def _mine(self, duty: str) -> bool:
        if self._connection is None or self._connection.is_closed():
            self._held.clear()
            self._connection = await connect_watched(self._dsn)
        if duty in self._held:
            return bool(await self._connection.fetchval(load("connection_alive")))
        if await self._connection.fetchval(load("try_duty_lock"), duty):
            self._held.add(duty)
        return duty in self._held

    async def close(self) -> None:
        """Give every duty up."""
        connection, self._connection = self._connection, None
        self._held.clear()
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)


class DatabaseClock:
    """What time the database says it is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def database_now(self) -> Instant:
        row = await self._database.fetch_one("database_now")
        assert row is not None
        return Instant(row["database_now"])
