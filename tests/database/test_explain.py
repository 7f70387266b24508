"""Tests that explaining and previewing write no row: no row version in the database is new afterwards."""

from __future__ import annotations

from dataclasses import replace

import asyncpg

from administration.attention.service import AttentionViews
from administration.explain.service import Explain
from administration.thresholds.keys import changes_of
from administration.thresholds.service import Thresholds
from domain.batches import QoS
from domain.dispatch import RequestWrites
from domain.settings import Settings
from domain.units import HostId, InstanceId, JobId, later
from store.postgres import open_store
from tests.builders import NOW
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_registered_version, a_sent_instance, a_submitted_batch

TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"


async def every_row(dsn: str) -> dict[str, list[str]]:
    """Return every row of every table with its transaction and position."""
    connection = await asyncpg.connect(dsn)
    found = {}
    for (name,) in await connection.fetch(TABLES):
        rows = await connection.fetch(f'SELECT t.xmin::text || t.ctid::text || t::text FROM "{name}" AS t ORDER BY 1')
        found[name] = [row[0] for row in rows]
    await connection.close()
    return found


async def test_no_row_is_written(dsn: str) -> None:
    store = await open_store(dsn, min_size=1, max_size=3)
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5, qos=QoS.AFAP)
    for _ in range(3):
        host = await a_registered_host(store, last_rpc_at=NOW)
        await store.ledger.write(RequestWrites(replace(host.host, last_rpc_at=later(NOW, 60.0)), known=host.host))
        await a_sent_instance(store, batch.batch_id, host)
    before = await every_row(dsn)
    assert len(before["host"]) == 3 and len(before["instance"]) == 5

    clock = HandClock(later(NOW, 120.0))
    explain = Explain(store, clock, attention=AttentionViews(store, Settings, clock))
    await explain.host(HostId(1))
    await explain.batch(batch.batch_id)
    await explain.job(JobId(4))
    await explain.instance(InstanceId(1))
    await Thresholds(store, HandClock(later(NOW, 120.0))).preview(changes_of([("p_tight", 0.5)]))
    await store.close()

    assert await every_row(dsn) == before
