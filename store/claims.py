"""Who works on a batch now? Whoever holds its session lock, so that two processes never do at once.

The server ends the session of a process that has asked nothing for 30 s: a process that is stopped keeps no batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from domain.errors import UnavailableError
from domain.units import BatchId
from store.pool import CLOSE_S, LOST, lost_means_unavailable
from store.queries import load
from store.watched import DEAD_S, WatchedConnection, connect_watched, kept_heard


class BatchClaims:
    """Session locks on one connection of its own, made when it is first needed; when it drops they are free."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: WatchedConnection | None = None
        self._claimed: set[BatchId] = set()  # a session's locks do not keep out its own other tasks
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def claim(self, batch_id: BatchId) -> AsyncIterator[bool]:
        """Yields whether nobody else has the batch. Raises UnavailableError."""
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
                if taken and self._connection is session:  # with its session the claim is gone
                    with suppress(UnavailableError):  # then it is free
                        await self._asked("release_claim", batch_id)
        finally:
            self._claimed.discard(batch_id)

    async def _be_heard(self, session: WatchedConnection | None) -> None:
        """Raises UnavailableError when the session of a claim is gone."""
        if self._connection is not session:
            raise UnavailableError("the session that held the claim is gone")
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
        """Give every claim up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)
