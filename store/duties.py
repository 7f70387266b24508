"""Which background duties does this process do? Those whose session lock it holds; each once per cluster.

The server ends the connection that holds the locks when nothing was asked on it for 30 s, so that another process
takes over from one that is stopped. What a process writes after that as if it held a lock is refused by the fence
(store.pool).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from domain.errors import UnavailableError
from domain.units import Instant
from store.pool import CLOSE_S, FENCE, LOST, Database, Fence, lost_means_unavailable
from store.queries import load
from store.watched import CLOCK, DEAD_S, KEEP_S, WatchedConnection, connect_watched

log = structlog.get_logger("duties")


class DutyLocks:
    """Session locks on one connection of its own; when it drops, all duties are lost and others take over."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: WatchedConnection | None = None
        self._pid = 0  # of the connection's session
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
                await self._close()
                raise

    async def _mine(self, duty: str) -> bool:
        if self._connection is None or self._connection.is_closed():
            self._held.clear()
            self._connection = await connect_watched(self._dsn, silence_s=DEAD_S)
            self._pid = await self._connection.fetchval(load("session_pid"))
        if duty in self._held:
            return bool(await self._connection.fetchval(load("connection_alive")))
        if await self._connection.fetchval(load("try_duty_lock"), duty):
            self._held.add(duty)
        return duty in self._held

    @contextmanager
    def fence(self, duty: str) -> Iterator[None]:
        """Inside, transactions of pools are refused when the lock of the duty is lost: UnavailableError."""
        connection = self._connection
        if duty not in self._held or connection is None or connection.is_closed():
            raise UnavailableError(f"this process lost the lock of the duty {duty}: another may do it now")
        token = FENCE.set(Fence(duty, self._pid))
        try:
            yield
        finally:
            FENCE.reset(token)

    async def give_up(self, duty: str) -> None:
        """Let another process do the duty. Raises UnavailableError; every lock is then given up."""
        async with self._turn:
            if duty not in self._held or self._connection is None:
                return
            self._held.discard(duty)
            try:
                with lost_means_unavailable():
                    await self._connection.execute(load("give_up_duty"), duty)
            except UnavailableError:
                await self._close()
                raise

    async def run(self) -> None:
        """Be heard by the server every 5 s, for ever, however long rounds take."""
        while True:
            await CLOCK.sleep(KEEP_S)
            try:
                await self._be_heard()
            except UnavailableError as error:
                log.warning("locks of duties lost", why=str(error))

    async def _be_heard(self) -> None:
        async with self._turn:
            if self._connection is None:
                return
            try:
                with lost_means_unavailable():
                    await self._connection.fetchval(load("connection_alive"))
            except UnavailableError:
                await self._close()
                raise

    async def close(self) -> None:
        """Give every duty up."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
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
