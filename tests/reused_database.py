"""A database that many tests use in turn; each finds it as new.

Copying a database and warming new sessions takes longer than most tests. Between tests, `_EMPTY` puts back the rows and
sequences of the template, without triggers, which needs a superuser. After a test that created or removed a table, that
left files so large that samples of tables would differ, or whose rows could not be put back, the next one gets a new
copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import asyncpg

from domain.clock import SystemClock
from store.pool import Database
from store.postgres import PostgresStore
from tests.pg import database

MOST_BYTES = 64 * 8192  # of a table or an index; deleted rows stay in the files
_RELATIONS = "SELECT array_agg(oid::int8 ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
_LARGEST = "SELECT max(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
_KEEP_ROWS = """
CREATE SCHEMA at_first;
CREATE TABLE at_first.sequences AS
    SELECT seqrelid::regclass AS name, coalesce(pg_sequence_last_value(seqrelid), seqstart) AS value,
        pg_sequence_last_value(seqrelid) IS NOT NULL AS is_called
    FROM pg_sequence;
CREATE TABLE at_first.filled (name regclass, rows_at_first regclass);
DO $$
DECLARE
    found regclass;
BEGIN
    FOR found IN SELECT oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
    LOOP
        EXECUTE format('CREATE TABLE at_first.%s AS TABLE public.%1$s', found);
        INSERT INTO at_first.filled VALUES (found, format('at_first.%s', found)::regclass);
    END LOOP;
END $$
"""
_EMPTY = """
DO $$
DECLARE
    used regclass;
    kept regclass;
BEGIN
    FOR used IN SELECT oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
    LOOP
        EXECUTE format('DELETE FROM %s', used);
    END LOOP;
    FOR used, kept IN SELECT name, rows_at_first FROM at_first.filled LOOP
        EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE TABLE %s', used, kept);
    END LOOP;
    PERFORM setval(name, value, is_called) FROM at_first.sequences;
END $$
"""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A database with its warm sessions; `relations` are those of a new one."""

    sessions: Database
    cleaner: asyncpg.Connection[asyncpg.Record]
    relations: list[int]


class ReusedDatabase:
    """Gives one test after the other a store. Its owner must close it, in the event loop of all these tests."""

    def __init__(self) -> None:
        self._opened: _Opened | None = None
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def store(self) -> AsyncIterator[PostgresStore]:
        opened = self._opened = self._opened or await self._open()
        store = PostgresStore(opened.sessions, SystemClock())
        try:
            yield store
        finally:
            is_emptied = False
            try:
                await store.ledger.close()
                await store.forecasts.close()
                await store.forecasting.close()
                is_emptied = await self._empty(opened)
            finally:
                if not is_emptied:
                    await self.aclose()

    async def _empty(self, opened: _Opened) -> bool:
        """Put back the first rows; return whether the next test may use the database."""
        if await opened.cleaner.fetchval(_RELATIONS) != opened.relations:
            return False
        await opened.cleaner.execute(_EMPTY)
        largest: int = await opened.cleaner.fetchval(_LARGEST)
        return largest <= MOST_BYTES

    async def aclose(self) -> None:
        self._opened = None
        await self._stack.aclose()

    async def _open(self) -> _Opened:
        dsn = await self._stack.enter_async_context(database())
        cleaner = await asyncpg.connect(dsn, server_settings={"session_replication_role": "replica"})
        self._stack.push_async_callback(cleaner.close)
        await cleaner.execute(_KEEP_ROWS)
        sessions = await Database.open(dsn, min_size=1, max_size=4)
        self._stack.push_async_callback(sessions.close)
        return _Opened(sessions, cleaner, await cleaner.fetchval(_RELATIONS))
