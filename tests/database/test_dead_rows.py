"""Tests that a refill reads no more after 20,000 dispatches without vacuum than before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from domain.batches import Batch
from domain.units import SHARDS
from store.pool import SESSION
from store.postgres import open_store
from store.queries import load
from tests.database.plans import blocks, explained, walk
from tests.worlds import a_submitted_batch

JOBS = 24_000
SENT = 20_000
PER_SHARD = 16
SEND = """
    UPDATE instance SET
        state = 'in_progress', host_id = instance_id, volunteer_id = instance_id, app_version_id = 1,
        sent_at = created_at, due_at = created_at + 1, timeout_at = created_at + 1
    WHERE instance_id BETWEEN $1 AND $2
"""

Plan = dict[str, Any]


class Backlog:
    """A batch whose first instances are sent in order, a thousand per transaction, without vacuum."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record], batch: Batch, first_id: int) -> None:
        self.connection = connection
        self.batch = batch
        self.first_id = first_id

    async def send(self, count: int) -> None:
        for start in range(self.first_id, self.first_id + count, 1000):
            await self.connection.execute(SEND, start, start + 999)

    async def _until_dead_for_all(self) -> None:
        """Wait for other tests' transactions on the same server, because dead rows they may still see are not marked in
        an index.
        """
        sent = await self.connection.fetchval("SELECT pg_current_xact_id()::text::bigint")
        for _ in range(400):
            if await self.connection.fetchval("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint") >= sent:
                return
            await self.connection.execute("SELECT pg_sleep(0.05)")
        pytest.skip("a transaction of another database on this server holds back what an index may note as dead")

    async def fresh(self, *, after: int) -> Plan:
        """Refill every shard after the cursors `after`."""
        sql = load("fresh_instances")
        shards = ", ".join(str(shard) for shard in range(SHARDS))
        for number, value in (
            (1, f"array_fill({self.batch.batch_id}::bigint, ARRAY[{SHARDS}])"),
            (2, f"ARRAY[{shards}]"),
            (3, f"array_fill({after}::bigint, ARRAY[{SHARDS}])"),
            (4, f"array_fill({PER_SHARD}, ARRAY[{SHARDS}])"),
        ):
            sql = sql.replace(f"${number}", value)
        found: Plan = (await explained(self.connection, sql))["Plan"]
        assert found["Actual Rows"] == SHARDS * PER_SHARD
        return found

    async def soon(self, name: str, most: int, *, at_most: float) -> int:
        """Return the blocks of a scan after some others: each marks the dead rows it found in the index.

        An open snapshot, for example of an automatic ANALYZE, prevents marking.
        """
        await self._until_dead_for_all()
        seen = blocks(await self.look(name, most))
        for _ in range(50):
            if seen <= at_most:
                break
            await self.connection.execute("SELECT pg_sleep(0.1)")
            seen = min(seen, blocks(await self.look(name, most)))
        return seen

    async def look(self, name: str, most: int) -> Plan:
        sql = load(name).replace("$1", f"ARRAY[{self.batch.batch_id}]").replace("$2", str(most))
        found: Plan = (await explained(self.connection, sql))["Plan"]
        assert found["Actual Rows"] == most
        return found


@pytest.fixture
async def backlog(dsn: str) -> AsyncIterator[Backlog]:
    store = await open_store(dsn, min_size=1, max_size=2)
    batch = await a_submitted_batch(store, jobs=JOBS)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute("ALTER TABLE instance SET (autovacuum_enabled = false)")
    await connection.execute("VACUUM ANALYZE")
    yield Backlog(connection, batch, await connection.fetchval("SELECT min(instance_id) FROM instance"))
    await connection.close()


def passed_over(plan: Plan) -> int:
    """Return the entries of the waiting instances' index that led to no instance."""
    return sum(
        int(node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)) for node in walk(plan)
    )


async def test_refill_after_cursors_skips_dead_rows(backlog: Backlog) -> None:
    before = await backlog.fresh(after=0)
    await backlog.send(SENT)
    after = await backlog.fresh(after=backlog.first_id + SENT - 1)

    assert blocks(after) <= 1.1 * blocks(before)
    assert passed_over(after) == 0


async def test_the_cursors_are_what_spares_a_refill_the_dead_rows(backlog: Backlog) -> None:
    """A scan of the same range from its start passes everything that was sent."""
    await backlog.send(SENT)
    from_the_start = await backlog.fresh(after=0)
    behind = await backlog.fresh(after=backlog.first_id + SENT - 1)

    assert blocks(from_the_start) > 3 * blocks(behind)


async def test_scans_from_start_skip_known_dead_rows(backlog: Backlog) -> None:
    """If a range is restarted, at the end of a batch or by a new worker, the first scan marks the dead rows."""
    before = await backlog.look("tail_instances", 20)
    await backlog.send(SENT)

    most = blocks(before) + SENT / 200
    assert await backlog.soon("tail_instances", 20, at_most=most) <= most


async def test_sent_urgent_instances_do_not_slow_next_scan(backlog: Backlog) -> None:
    await backlog.connection.execute("UPDATE instance SET urgent = true")
    before = await backlog.look("urgent_instances", 20)
    await backlog.send(SENT)

    # Besides its 20 instances, one index page per few hundred sent ones remains.
    most = blocks(before) + SENT / 100
    assert await backlog.soon("urgent_instances", 20, at_most=most) <= most
