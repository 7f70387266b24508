"""A reused database is as a new one for each test."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg

from tests.pg import database
from tests.reused_database import ReusedDatabase
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
SEQUENCES = "SELECT seqrelid::regclass::text, pg_sequence_last_value(seqrelid) FROM pg_sequence"


async def contents(dsn: str) -> Mapping[str, object]:
    """Return the rows of each table, and the last value of each sequence."""
    connection = await asyncpg.connect(dsn)
    try:
        found: dict[str, object] = {}
        for name, last in await connection.fetch(SEQUENCES):
            found[name] = last
        for (name,) in await connection.fetch(TABLES):
            found[name] = await connection.fetchval(f"SELECT array_agg(one::text ORDER BY one::text) FROM {name} one")
        return found
    finally:
        await connection.close()


async def test_next_test_finds_rows_and_ids_of_a_new_database() -> None:
    reused = ReusedDatabase()
    async with reused.store() as store:
        host = await a_registered_host(store)
        batch = await a_submitted_batch(store, jobs=2)
        await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host)))
        used = await contents(store.ledger.writes.dsn)
    async with database() as new, reused.store() as store:
        emptied = await contents(store.ledger.writes.dsn)
        at_first = await contents(new)
        used_by = [name for name in at_first if used[name] != at_first[name]]
    await reused.aclose()

    assert emptied == at_first
    assert {"host", "batch", "instance", "host_host_id_seq"} <= set(used_by)


async def test_next_test_gets_a_copy_after_a_table_was_made() -> None:
    reused = ReusedDatabase()
    async with reused.store() as store:
        before = store.ledger.writes.dsn
        connection = await asyncpg.connect(before)
        await connection.execute("CREATE TABLE left_over ()")
        await connection.close()
    async with reused.store() as store:
        after = store.ledger.writes.dsn
    async with reused.store() as store:
        kept = store.ledger.writes.dsn
    await reused.aclose()

    assert before != after == kept
