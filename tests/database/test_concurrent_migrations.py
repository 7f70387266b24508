"""Indexes of the busy table are built while nodes write to it, and a build that was broken off is done again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from domain.clock import SystemClock
from store.locks import PostgresShards
from store.migrate import Migration, _apply, migrate
from tests.builders import NOW
from tests.faults.waiting import until

FAILED = "0042_pre_concurrently_failed_instances.sql"
FORGET = "DROP INDEX instance_failed; DELETE FROM schema_version WHERE version = 42"
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
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%turn to migrate%'
            AND state = 'active'
    )
"""
INDEXES = """
    SELECT relname, indisvalid, indexrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname IN ('instance_failed', 'instance_of_batch', 'instance_of_volunteer', 'next_one', 'next_two')
    ORDER BY relname
"""


class Next(Migration):
    """A migration of the next version with two indexes."""

    __slots__ = ()

    def sql(self) -> str:
        return """
            -- Both of the busy table.
            CREATE INDEX CONCURRENTLY IF NOT EXISTS next_one ON instance (created_at);
            CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS next_two ON instance (created_at)
            WHERE state = 'unsent';
        """


NEXT = Next(9001, "pre", "9001_pre_concurrently_two.sql")


@pytest.fixture
async def look(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection that looks at a database whose instance_failed is still to be built."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(FORGET)
    yield connection
    await connection.close()


@pytest.fixture
async def writer(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection whose transaction has written to `instance` and stays open."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("BEGIN")
    await connection.execute(INSERT, 1)
    yield connection
    await connection.close()


async def build_waits(look: asyncpg.Connection[asyncpg.Record]) -> None:
    async def waits() -> bool:
        return bool(await look.fetchval(WAITS))

    await until(waits, 60, "the build waits for the open transaction")


async def validity(look: asyncpg.Connection[asyncpg.Record], *names: str) -> dict[str, bool]:
    return {row["relname"]: row["indisvalid"] for row in await look.fetch(INDEXES) if row["relname"] in names}


async def test_nodes_send_jobs_while_an_index_of_the_busy_table_is_built(
    dsn: str, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    migrating = asyncio.create_task(migrate(dsn, now=NOW, pre_only=True))
    await build_waits(look)

    await look.execute("SET lock_timeout = '1s'")
    await look.execute(INSERT, 2)
    assert await look.execute(SEND, 2) == "UPDATE 1"
    assert not migrating.done()

    await writer.execute("COMMIT")
    assert await migrating == [FAILED]
    assert await validity(look, "instance_failed") == {"instance_failed": True}


async def test_a_build_that_was_broken_off_is_done_again(
    dsn: str, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    migrating = asyncio.create_task(migrate(dsn, now=NOW))
    await build_waits(look)
    migrating.cancel()  # as by Ctrl-C
    with pytest.raises(asyncio.CancelledError):
        await migrating
    assert await validity(look, "instance_failed") == {"instance_failed": False}
    await writer.execute("COMMIT")

    assert await migrate(dsn, now=NOW) == [FAILED]
    assert await validity(look, "instance_failed") == {"instance_failed": True}
    assert await migrate(dsn, now=NOW) == []


async def test_a_migration_of_two_indexes_is_done_when_both_are_and_builds_neither_twice(
    dsn: str, look: asyncpg.Connection[asyncpg.Record]
) -> None:
    noted = "SELECT count(*) FROM schema_version WHERE version = 9001"
    for job_id in (1, 2):
        await look.execute(INSERT, job_id)
    connection = await asyncpg.connect(dsn)
    with pytest.raises(asyncpg.UniqueViolationError):
        await _apply(connection, NEXT, NOW)
    broken = {row["relname"]: row["indexrelid"] for row in await look.fetch(INDEXES)}
    assert await validity(look, "next_one", "next_two") == {"next_one": True, "next_two": False}
    assert await look.fetchval(noted) == 0

    await look.execute("DELETE FROM instance")
    assert await _apply(connection, NEXT, NOW)
    await connection.close()
    mended = {row["relname"]: row["indexrelid"] for row in await look.fetch(INDEXES)}
    assert await validity(look, "next_one", "next_two") == {"next_one": True, "next_two": True}
    assert await look.fetchval(noted) == 1
    assert (mended["next_one"] == broken["next_one"], mended["next_two"] == broken["next_two"]) == (True, False)


async def test_of_two_that_migrate_at_once_the_second_waits_and_does_not_hold_the_first_up(
    dsn: str, look: asyncpg.Connection[asyncpg.Record], writer: asyncpg.Connection[asyncpg.Record]
) -> None:
    """A statement that waits has a snapshot, and a build ends after every snapshot from before it."""
    first = asyncio.create_task(migrate(dsn, now=NOW))
    await build_waits(look)
    second = asyncio.create_task(migrate(dsn, now=NOW))

    async def asks() -> bool:
        return bool(await look.fetchval(ASKS))

    await until(asks, 60, "the second one asks for its turn")
    await writer.execute("COMMIT")

    assert await first == [FAILED]
    assert await second == []


async def test_a_database_is_migrated_while_workers_feed_its_shards_and_keeps_indexes_it_has(dsn: str) -> None:
    """Older versions built these indexes in migrations of other numbers."""
    look = await asyncpg.connect(dsn)
    await look.execute("DELETE FROM schema_version WHERE version IN (42, 45, 50)")
    before = await look.fetch(INDEXES)
    worker = PostgresShards(dsn, SystemClock())
    assert len(await worker.run_once()) == 64

    applied = await migrate(dsn, now=NOW, pre_only=True)

    assert applied == [
        FAILED,
        "0045_pre_concurrently_instances_of_batch.sql",
        "0050_pre_concurrently_instances_of_volunteer.sql",
    ]
    assert await look.fetch(INDEXES) == before
    assert len(before) == 3
    await worker.close()
    await look.close()
