"""Tests that an abort is finished, wherever its process was killed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import asyncpg
import pytest

from domain.errors import UnavailableError
from store.pool import Connection, Database
from store.postgres import PostgresStore
from store.submissions import PostgresSubmissions
from tests.builders import NOW
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch

JOBS = "SELECT state, count(*) FROM job WHERE batch_id = $1 GROUP BY state ORDER BY state"
INSTANCES = "SELECT state, count(*) FROM instance WHERE batch_id = $1 GROUP BY state ORDER BY state"


@dataclass
class Dying:
    """A database whose client is killed after a number of committed statements and transactions."""

    database: Database
    left: int

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        self._live_on()
        return await self.database.fetch(query, *arguments)

    async def fetch_one(self, query: str, *arguments: object) -> asyncpg.Record | None:
        self._live_on()
        return await self.database.fetch_one(query, *arguments)

    async def fetch_known(self, query: str, *arguments: object, kind: str) -> asyncpg.Record:
        self._live_on()
        return await self.database.fetch_known(query, *arguments, kind=kind)

    async def in_transaction(self, work: Callable[[Connection], Awaitable[Any]]) -> object:
        self._live_on()
        return await self.database.in_transaction(work)

    def _live_on(self) -> None:
        if not self.left:
            raise UnavailableError("killed")
        self.left -= 1


async def test_an_abort_that_was_cut_by_a_kill_is_finished(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    database = await Database.open(store.ledger.writes.dsn, min_size=1, max_size=2)
    for calls in range(1, 9):  # an abort of so few jobs takes nine
        batch = await a_submitted_batch(store, jobs=3)
        await a_sent_instance(store, batch.batch_id, host)
        with pytest.raises(UnavailableError):
            await PostgresSubmissions(cast(Database, Dying(database, calls))).abort_batch(batch.batch_id, now=NOW)

        await store.submissions.finish_aborts()

        assert await counted(database, JOBS, batch.batch_id) == [("cancelled", 3)]
        assert await counted(database, INSTANCES, batch.batch_id) == [("cancelled", 2), ("in_progress", 1)]
        assert await store.submissions.finish_aborts() == 0
    await database.close()


async def counted(database: Database, sql: str, *arguments: object) -> list[tuple[object, ...]]:
    async with database.transaction() as connection:
        return [tuple(row) for row in await connection.fetch(sql, *arguments)]


async def test_a_finished_abort_leaves_nothing_to_finish(store: PostgresStore) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    assert await store.submissions.finish_aborts() == 0
