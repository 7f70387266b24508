"""Holds session locks on dedicated connections: a worker's shards, a process's periodic tasks, and claimed batches.

TCP keep-alive releases the locks of a vanished machine (store/pool.py). The server ends a session after 30 s without a
command, so that another process can take over from one that is suspended or cut off. A worker considers its shards lost
after its connection has been silent for 15 s. The fence rejects later writes of the former holder.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import structlog

from domain.clock import Clock, SystemClock
from domain.errors import UnavailableError
from domain.settlement import ALL_JOBS, JobShare
from domain.units import SHARDS, BatchId, Instant, Seconds
from store.pool import (
    CLOSE_S,
    FENCE,
    LOST,
    Fence,
    OnDatabase,
    ShortSession,
    lost_means_unavailable,
    open_session,
    probe,
)
from store.queries import load

__all__ = ["CLOCK", "DEAD_S", "KEEP_S", "WatchedConnection", "connect_watched", "kept_heard", "probe"]

CLOCK = SystemClock()  # the server measures real time, even if a test uses another clock
COMMAND_TIMEOUT_S = 5.0
DEAD_S = 30.0  # silence after which the server releases a process's locks
KEEP_S = 5.0  # interval at which an idle process sends a command


class WatchedConnection(ShortSession):
    """A session created by `connect_watched`."""


async def connect_watched(dsn: str, *, silence_s: float | None = None) -> WatchedConnection:
    """Connect with TCP keep-alive on both sides; each command is limited to 5 s. Raises UnavailableError.

    The server ends the session after `silence_s` seconds without a command.
    """
    settings = {} if silence_s is None else {"idle_session_timeout": f"{silence_s * 1000:.0f}"}
    with lost_means_unavailable():
        return await open_session(dsn, WatchedConnection, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)


@asynccontextmanager
async def kept_heard(ask: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Inside the block, call `ask`, which runs a command, every 5 s until it raises UnavailableError."""

    async def keep() -> None:
        with suppress(UnavailableError):
            while True:
                await CLOCK.sleep(KEEP_S)
                await ask()

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


class BatchClaims:
    """Session locks on batches, on a connection opened on first use. If it is lost, the locks are released."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: WatchedConnection | None = None
        self._claimed: set[BatchId] = set()  # session locks do not exclude other tasks of the same session
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def claim(self, batch_id: BatchId) -> AsyncIterator[bool]:
        """Try to claim the batch. Yields whether the claim succeeded. Raises UnavailableError."""
        if batch_id in self._claimed:
            yield False
            return
        self._claimed.add(batch_id)
        try:
            taken = await self._asked("try_claim", batch_id)
            session = self._connection
            try:
                async with kept_heard(lambda: self._be_heard(session)):
                    yield taken
            finally:
                if taken and self._connection is session:  # the claim ended with its session
                    with suppress(UnavailableError):  # the claim is then already released
                        await self._asked("release_claim", batch_id)
        finally:
            self._claimed.discard(batch_id)

    async def _be_heard(self, session: WatchedConnection | None) -> None:
        """Send a command. Raises UnavailableError if the session that holds a claim is lost."""
        if self._connection is not session:
            raise UnavailableError("the session that held the claim has ended")
        await self._asked("connection_alive")

    async def _asked(self, query: str, *arguments: object) -> bool:
        async with self._turn:
            try:
                with lost_means_unavailable():
                    if self._connection is None or self._connection.is_closed():
                        self._connection = await connect_watched(self._dsn, silence_s=DEAD_S)
                    return bool(await self._connection.fetchval(load(query), *arguments))
            except UnavailableError:
                await self.close()
                raise

    async def close(self) -> None:
        """Release all claims."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)


log = structlog.get_logger("duties")


class DutyLocks:
    """Session locks on one connection. If it is lost, other processes take over all periodic tasks.

    A task in `shared` runs in every process, and the processes divide its jobs among them (`share`).
    """

    def __init__(self, dsn: str, shared: Collection[str] = ()) -> None:
        self._dsn = dsn
        self._shares = dict.fromkeys(shared, ALL_JOBS)
        self._connection: WatchedConnection | None = None
        self._pid = 0  # of the connection's session
        self._held: set[str] = set()
        self._turn = asyncio.Lock()

    async def mine(self, duty: str) -> bool:
        """Return whether this process runs the periodic task: it holds the lock, or has just acquired it.

        Raises UnavailableError and gives up all locks if the database is unavailable.
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
        if duty not in self._held:
            query = "try_share" if duty in self._shares else "try_duty_lock"
            if not await self._connection.fetchval(load(query), duty):
                return False
            self._held.add(duty)
        elif duty not in self._shares:
            return bool(await self._connection.fetchval(load("connection_alive")))
        if duty in self._shares:
            holders = await self._connection.fetchval(load("duty_holders"), duty)
            self._shares[duty] = JobShare(holders.index(self._pid), len(holders))
        return True

    def share(self, duty: str) -> JobShare:
        """Return this process's share of a shared task's jobs, as of the last call to `mine`.

        Just after a process joins or leaves, shares may overlap or miss some jobs.
        """
        return self._shares[duty]

    @contextmanager
    def fence(self, duty: str) -> Iterator[None]:
        """Make pool transactions inside the block raise UnavailableError if the task's lock is lost."""
        connection = self._connection
        if duty not in self._held or connection is None or connection.is_closed():
            raise UnavailableError(
                f"this process lost the lock of the periodic task {duty}: another process may run it now"
            )
        token = FENCE.set(Fence(duty, self._pid))
        try:
            yield
        finally:
            FENCE.reset(token)

    async def give_up(self, duty: str) -> None:
        """Release the task for another process. If it raises UnavailableError, all locks are given up."""
        async with self._turn:
            if duty not in self._held or self._connection is None:
                return
            self._held.discard(duty)
            query = "give_up_share" if duty in self._shares else "give_up_duty"
            try:
                with lost_means_unavailable():
                    await self._connection.execute(load(query), duty)
            except UnavailableError:
                await self._close()
                raise

    async def run(self) -> None:
        """Send a command to the server every 5 s forever, independently of the duration of rounds."""
        while True:
            await CLOCK.sleep(KEEP_S)
            try:
                await self._be_heard()
            except UnavailableError as error:
                log.warning("locks of periodic tasks lost", why=str(error))

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
        """Release all locks."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._held.clear()
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)


class DatabaseClock(OnDatabase):
    """Reads the database's clock."""

    async def database_now(self) -> Instant:
        row = await self._database.fetch_first("database_now")
        return Instant(row["database_now"])


LOCK_CLASS = 19797  # class of advisory locks; shard -1 marks a live worker
INTERVAL_S = 1.0
SILENCE_S = 15.0


def fair_share(workers: Sequence[int], me: int) -> int:
    """Return how many of the 64 shards this worker should own: an equal share, plus one for the first few workers.

    `workers` must be distinct and include `me`.

    >>> [fair_share([7, 8, 9], me) for me in (7, 8, 9)]
    [22, 21, 21]
    """
    share, more = divmod(SHARDS, len(workers))
    return share + (sorted(workers).index(me) < more)


class PostgresShards:
    """Implements the feeder's Shards. Each call to `run_once` moves this worker towards its fair share."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        self._dsn = dsn
        self._clock = clock
        self._connection: WatchedConnection | None = None
        self._owned: frozenset[int] = frozenset()
        self._heard_at = Seconds(-math.inf)

    def owned(self) -> frozenset[int]:
        """Return this worker's shards, none if its connection is lost or has been silent for 15 s."""
        return frozenset() if self.in_doubt() else self._owned

    def in_doubt(self) -> bool:
        """Return whether the connection that holds the locks is lost or has been silent for 15 s."""
        if self._connection is None or self._connection.is_closed():
            return True
        return self.silent_s() > SILENCE_S

    def silent_s(self) -> Seconds:
        """Return the time since the last answered command was sent, infinite before the first."""
        return Seconds(self._clock.monotonic() - self._heard_at)

    async def run_once(self) -> frozenset[int]:
        """Contact the database, release excess shards and acquire free ones. Return the shards now owned.

        Raises UnavailableError if the connection, and with it the shards, is lost.
        """
        try:
            with lost_means_unavailable():
                connection = await self._connected()
                await self._rebalance(connection)
        except UnavailableError:
            self._forget()
            raise
        return self._owned

    async def run(self) -> None:
        """Rebalance every second, forever."""
        log = structlog.get_logger("shards")
        while True:
            try:
                await self.run_once()
            except UnavailableError as error:
                log.warning("shards lost", error=str(error))
            await self._clock.sleep(INTERVAL_S)

    async def close(self) -> None:
        """Release all shards."""
        connection, self._connection = self._connection, None
        self._owned = frozenset()
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)

    async def _connected(self) -> WatchedConnection:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        self._owned = frozenset()
        connection = await connect_watched(self._dsn, silence_s=DEAD_S)
        self._connection = connection
        await connection.execute(load("join_workers"), LOCK_CLASS)
        return connection

    async def _rebalance(self, connection: WatchedConnection) -> None:
        asked_at = self._clock.monotonic()
        row = await connection.fetchrow(load("shard_holders"), LOCK_CLASS)
        assert row is not None  # an aggregate
        self._heard_at = asked_at  # not the time of the reply, which may have been delayed
        fair = fair_share(row["workers"], row["me"])
        for shard in sorted(self._owned)[fair:]:
            self._owned -= {shard}  # first locally, so that no more of its work is sent
            await connection.execute(load("give_up_shard"), LOCK_CLASS, shard)
        taken = set(row["taken"]) | self._owned
        for shard in sorted(set(range(SHARDS)) - taken):
            if len(self._owned) >= fair:
                break
            if await connection.fetchval(load("try_lock_shard"), LOCK_CLASS, shard):
                self._owned |= {shard}

    def _forget(self) -> None:
        self._owned = frozenset()
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
