"""Tests that indexes of the busy table are built while nodes write, and interrupted builds are repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from domain.clock import SystemClock
from store.locks import PostgresShards
from store.migrate import migrate
from tests.builders import NOW
from tests.faults.waiting import until

LATE = "9001_pre_concurrently_late.sql"
LATE_SQL = "CREATE INDEX CONCURRENTLY IF NOT EXISTS next_late ON instance (due_at) WHERE state = 'in_progress';"
TWO = "9002_pre_concurrently_two.sql"
TWO_SQL = """
    -- Both of the busy table.
    CREATE INDEX CONCURRENTLY IF NOT EXISTS next_one ON instance (created_at);
    CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS next_two ON instance (created_at)
    WHERE state = 'unsent';
"""
INSERT = "INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at) VALUES ($1, 1, 1, 1, 0)"
SEND = """
    UPDATE instance SET state = 'in_progress', host_id = 1, volunteer_id = 1, app_version_id = 1, sent_at = 5,
        due_at = 10, timeout_at = 11
    WHERE job_id = $1
"""
WAITS = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'
    )
"""
ASKS = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%take the migration lock%'
            AND state = 'active'
    )
"""
INDEXES = """
    SELECT relname, indisvalid, indexrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname IN ('next_late', 'next_one', 'next_two')
    ORDER BY relname
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a migration of the next version."""
    (tmp_path / LATE).write_text(LATE_SQL, encoding="utf-8")
    return tmp_path


@pytest.fixture
async def look(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Yield a connection that reads the database."""
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


@pytest.fixture
async def writer(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Yield a connection whose transaction has written to `instance` and stays open."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("BEGIN")
    await connection.execute(INSERT, 1)
    yield connection
    await connection.close()


async def build_waits(look: asyncpg.Connection[asyncpg.Record]) -> None:
    async def waits() -> bool:
        return bool(await look.fetchval(WAITS))

    await until(waits, 60, "the build waits for the open transaction")


async def validity(look: asyncpg.Connection[asyncpg.Record]) -> dict[str, bool]:
    return {row["relname"]: row["indisvalid"] for row in await look.fetch(INDEXES)}


async def test_nodes_write_while_an_index_is_built(
    dsn: str, folder: Path, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    migrating = asyncio.create_task(migrate(dsn, now=NOW, pre_only=True, folder=folder))
    await build_waits(look)

    await look.execute("SET lock_timeout = '1s'")
    await look.execute(INSERT, 2)
    assert await look.execute(SEND, 2) == "UPDATE 1"
    assert not migrating.done()

    await writer.execute("COMMIT")
    assert await migrating == [LATE]
    assert await validity(look) == {"next_late": True}


async def test_an_interrupted_build_is_repeated(
    dsn: str, folder: Path, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    migrating = asyncio.create_task(migrate(dsn, now=NOW, folder=folder))
    await build_waits(look)
    migrating.cancel()  # as by Ctrl-C
    with pytest.raises(asyncio.CancelledError):
        await migrating
    assert await validity(look) == {"next_late": False}
    await writer.execute("COMMIT")

    assert await migrate(dsn, now=NOW, folder=folder) == [LATE]
    assert await validity(look) == {"next_late": True}
    assert await migrate(dsn, now=NOW, folder=folder) == []


async def test_valid_indexes_are_not_built_twice(
    dsn: str, tmp_path: Path, look: asyncpg.Connection[asyncpg.Record]
) -> None:
    """A migration of two indexes is recorded when both are valid; the second try builds only the second."""
    recorded = "SELECT count(*) FROM schema_version WHERE version = 9002"
    (tmp_path / TWO).write_text(TWO_SQL, encoding="utf-8")
    for job_id in (1, 2):
        await look.execute(INSERT, job_id)
    with pytest.raises(asyncpg.UniqueViolationError):
        await migrate(dsn, now=NOW, folder=tmp_path)
    broken = {row["relname"]: row["indexrelid"] for row in await look.fetch(INDEXES)}
    assert await validity(look) == {"next_one": True, "next_two": False}
    assert await look.fetchval(recorded) == 0

    await look.execute("DELETE FROM instance")
    assert await migrate(dsn, now=NOW, folder=tmp_path) == [TWO]
    mended = {row["relname"]: row["indexrelid"] for row in await look.fetch(INDEXES)}
    assert await validity(look) == {"next_one": True, "next_two": True}
    assert await look.fetchval(recorded) == 1
    assert (mended["next_one"] == broken["next_one"], mended["next_two"] == broken["next_two"]) == (True, False)


async def test_a_second_migrate_does_not_block_the_first(
    dsn: str, folder: Path, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    """A waiting statement has a snapshot, and a concurrent build waits for every older snapshot."""
    first = asyncio.create_task(migrate(dsn, now=NOW, folder=folder))
    await build_waits(look)
    second = asyncio.create_task(migrate(dsn, now=NOW, folder=folder))

    async def asks() -> bool:
        return bool(await look.fetchval(ASKS))

    await until(asks, 60, "the second one asks for its turn")
    await writer.execute("COMMIT")

    assert await first == [LATE]
    assert await second == []


async def test_migrate_runs_while_workers_feed_shards(
    dsn: str, folder: Path, look: asyncpg.Connection[asyncpg.Record]
) -> None:
    """Shard locks are not the migration lock; an existing index is kept."""
    await look.execute(LATE_SQL)
    before = await look.fetch(INDEXES)
    worker = PostgresShards(dsn, SystemClock())
    assert len(await worker.run_once()) == 64

    assert await migrate(dsn, now=NOW, pre_only=True, folder=folder) == [LATE]
    assert await look.fetch(INDEXES) == before
    assert len(before) == 1
    await worker.close()
