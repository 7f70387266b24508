"""Which shards does this worker feed? Session-level advisory locks, on a connection of their own.

A worker's locks end with its connection, so nobody writes leases. The server notices a dead machine within 30 s
(store.sessions) and ends the connection of a worker that has asked nothing for 30 s; a worker whose connection has
been silent for 15 s regards its shards as lost before that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import SHARDS, Seconds
from store.pool import CLOSE_S, LOST, lost_means_unavailable
from store.queries import load
from store.watched import DEAD_S, WatchedConnection, connect_watched

LOCK_CLASS = 19797  # of advisory locks; -1 among its shards says that a worker lives
INTERVAL_S = 1.0
SILENCE_S = 15.0


def fair_share(workers: Sequence[int], me: int) -> int:
    """How many of the 64 shards are mine: as many as everybody's, or one more for the first of them.

    `workers` are distinct and contain `me`.

    >>> [fair_share([7, 8, 9], me) for me in (7, 8, 9)]
    [22, 21, 21]
    """
    share, more = divmod(SHARDS, len(workers))
    return share + (sorted(workers).index(me) < more)


class PostgresShards:
    """Satisfies the feeder's Shards. Every `run_once` moves this worker towards its fair share."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        self._dsn = dsn
        self._clock = clock
        self._connection: WatchedConnection | None = None
        self._owned: frozenset[int] = frozenset()
        self._heard_at = Seconds(-math.inf)

    def owned(self) -> frozenset[int]:
        """The shards this worker holds; none once its connection is lost, or silent for 15 s."""
        return frozenset() if self.in_doubt() else self._owned

    def in_doubt(self) -> bool:
        """Whether the connection that holds the locks is lost, or silent for 15 s."""
        if self._connection is None or self._connection.is_closed():
            return True
        return self.silent_s() > SILENCE_S

    def silent_s(self) -> Seconds:
        """How long ago the last answer was asked for; without end before the first one."""
        return Seconds(self._clock.monotonic() - self._heard_at)

    async def run_once(self) -> frozenset[int]:
        """Hear from the database, give up what is too much, take what is free; the shards held then.

        Raises UnavailableError when the connection is lost; its shards are gone with it.
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
        """Rebalance every second, for ever."""
        log = structlog.get_logger("shards")
        while True:
            try:
                await self.run_once()
            except UnavailableError as error:
                log.warning("shards lost", error=str(error))
            await self._clock.sleep(INTERVAL_S)

    async def close(self) -> None:
        """Give everything up."""
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
        self._heard_at = asked_at  # not later: the answer may have been long under way
        fair = fair_share(row["workers"], row["me"])
        for shard in sorted(self._owned)[fair:]:
            self._owned -= {shard}  # first here, so that nothing of it is handed out any more
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
