"""Tests that waiting batches are found at once among many active ones, and none is lost when it is unmarked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

import asyncpg
import pytest

from domain.restrictions import Restricted, Restriction
from domain.units import BatchId
from store.pool import SESSION
from store.postgres import PostgresStore, open_store
from store.queries import load
from tests.builders import NOW
from tests.database.blocking import until_blocked
from tests.database.plans import blocks, explained, walk
from tests.pg import database
from tests.worlds import a_submitted_batch

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

ADD = """
    INSERT INTO batch_count AS old (batch_id, stripe, unsent) VALUES ($1, 40, $2)
    ON CONFLICT (batch_id, stripe) DO UPDATE SET unsent = old.unsent + excluded.unsent
"""
OTHERS = """
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop
    )
    SELECT 1, 1, 1, 'throughput', 'active', 1, 0, -1, number, 0, 0, 1 FROM generate_series(1, 2000) AS number;
    INSERT INTO batch_count (batch_id, stripe, unsent, sent)
    SELECT batch_id, stripe, 1 - 2 * stripe, 1 FROM batch CROSS JOIN generate_series(0, 1) AS stripe
    WHERE order_tier = -1;
"""


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    """Return a database whose counters these tests change directly."""
    async with database() as made:
        yield made


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[PostgresStore]:
    opened = await open_store(dsn, min_size=1, max_size=2)
    yield opened
    await opened.close()


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[Connection]:
    opened = await asyncpg.connect(dsn, server_settings=SESSION)
    yield opened
    await opened.close()


async def ready(store: PostgresStore, limit: int = 10) -> list[BatchId]:
    return [batch.batch_id for batch in await store.waiting.ready_batches(limit)]


async def is_marked(connection: Connection, batch_id: BatchId) -> bool:
    return bool(await connection.fetchval("SELECT waiting FROM batch WHERE batch_id = $1", batch_id))


async def a_batch_of_one(store: PostgresStore) -> BatchId:
    return (await a_submitted_batch(store, jobs=1)).batch_id


async def test_drained_batch_loses_and_regains_its_mark(store: PostgresStore, connection: Connection) -> None:
    batch_id = await a_batch_of_one(store)
    assert await ready(store) == [batch_id]
    assert await is_marked(connection, batch_id)

    await connection.execute(ADD, batch_id, -1)
    assert await ready(store) == []
    assert not await is_marked(connection, batch_id)

    await connection.execute(ADD, batch_id, 1)
    assert await is_marked(connection, batch_id)
    assert await ready(store) == [batch_id]


async def test_requested_number_is_found_after_drained_batches(store: PostgresStore, connection: Connection) -> None:
    ids = [await a_batch_of_one(store) for _ in range(6)]
    for batch_id in ids[:3]:
        await connection.execute(ADD, batch_id, -1)

    assert sorted(await ready(store, limit=2)) == ids[3:5]


async def test_sending_changes_no_batch(store: PostgresStore, connection: Connection) -> None:
    batch_id = await a_batch_of_one(store)
    await connection.execute(ADD, batch_id, 0)  # the first row of a stripe reads its batch
    before = await connection.fetchval("SELECT xmin::text || '/' || xmax::text FROM batch")

    await connection.execute(ADD, batch_id, -1)

    assert await connection.fetchval("SELECT xmin::text || '/' || xmax::text FROM batch") == before


async def test_batch_being_added_to_keeps_its_mark(store: PostgresStore, connection: Connection) -> None:
    batch_id = await a_batch_of_one(store)
    await connection.execute(ADD, batch_id, -1)
    async with connection.transaction():
        await connection.execute(ADD, batch_id, 1)
        assert await ready(store) == []

    assert await is_marked(connection, batch_id)
    assert await ready(store) == [batch_id]


async def test_addition_during_unmarking_marks_batch_again(
    dsn: str, store: PostgresStore, connection: Connection
) -> None:
    batch_id = await a_batch_of_one(store)
    await connection.execute(ADD, batch_id, -1)
    other = await asyncpg.connect(dsn)
    async with connection.transaction():
        await connection.execute(load("lock_drained"), [batch_id])
        await connection.execute(load("unmark_drained"), [batch_id])
        adding = asyncio.create_task(other.execute(ADD, batch_id, 1))
        await until_blocked(connection, 1, adding)
    await adding
    await other.close()

    assert await is_marked(connection, batch_id)
    assert await ready(store) == [batch_id]


async def test_a_batch_that_waits_without_a_mark_is_a_difference(store: PostgresStore, connection: Connection) -> None:
    batch_id = await a_batch_of_one(store)
    assert await store.views.check_counters() == []

    await connection.execute("UPDATE batch SET waiting = false WHERE batch_id = $1", batch_id)

    assert await store.views.check_counters() != []


async def test_a_batch_that_waits_without_a_mark_is_marked_again(store: PostgresStore, connection: Connection) -> None:
    lost, drained, marked = [await a_batch_of_one(store) for _ in range(3)]
    await connection.execute(ADD, drained, -1)
    await connection.execute("UPDATE batch SET waiting = false WHERE batch_id = ANY($1::bigint[])", [lost, drained])
    assert await ready(store) == [marked]

    assert await store.waiting.mark_again() == 1

    assert sorted(await ready(store)) == [lost, marked]
    assert not await is_marked(connection, drained)
    assert await store.waiting.mark_again() == 0


async def test_active_batches_that_wait_for_nothing_are_not_looked_at(
    store: PostgresStore, connection: Connection
) -> None:
    """Two thousand of them precede the waiting one, in an order that has just changed."""
    batch_id = await a_batch_of_one(store)
    await connection.execute(OTHERS)
    while await connection.fetchval("SELECT count(*) FROM batch WHERE waiting") > 1:
        assert await ready(store, limit=500) in ([], [batch_id])
    await connection.execute("UPDATE batch SET order_key = -order_key")
    await connection.execute("ANALYZE batch")

    plan = (await explained(connection, load("ready_batches").replace("$1", "64").replace("$2", "'{1}'")))["Plan"]

    assert {node["Actual Rows"] for node in walk(plan) if node.get("Index Name") == "batch_to_send"} == {1}
    assert blocks(plan) < 100
    assert await ready(store) == [batch_id]


async def test_paused_and_blocked_batches_are_not_the_ready_ones(store: PostgresStore, connection: Connection) -> None:
    plain, paused, blocked, drained, by_queue = [
        (await a_submitted_batch(store, jobs=1, order_key=float(place), queue=queue)).batch_id
        for place, queue in enumerate(("normal", "normal", "normal", "normal", "bonus"))
    ]
    await connection.execute("UPDATE batch SET hold = 'over a limit' WHERE batch_id = ANY($1)", [blocked, drained])
    await connection.execute(ADD, drained, -1)
    for kind, name in ((Restricted.BATCH, str(paused)), (Restricted.QUEUE, "bonus")):
        await store.restrictions.put(Restriction(kind, name, 0, "a full disk", "ops", NOW))

    halted = [batch.batch_id for batch in await store.waiting.paused_or_blocked(9)]

    assert (await ready(store), halted) == ([plain], [paused, blocked, by_queue])
    assert [batch.batch_id for batch in await store.waiting.paused_or_blocked(1)] == [paused]
    await store.restrictions.put(Restriction(Restricted.APP, "1", 0, "a full disk", "ops", NOW))
    assert len(await store.waiting.paused_or_blocked(9)) == 4
