"""Tests that due dates are shifted after an outage, even if the shift is interrupted."""

from __future__ import annotations

import asyncpg
import pytest

from domain.settlement import OutageReport
from domain.units import HOUR_S, Seconds, later
from store.postgres import PostgresStore
from tests.builders import NOW
from tests.worlds import DAY_S, a_registered_host, a_sent_instance, a_submitted_batch, read

REFUSE = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON instance FOR EACH ROW WHEN (OLD.instance_id = {}) EXECUTE FUNCTION refuse();
"""


async def alive(store: PostgresStore, after_s: float) -> OutageReport:
    return await store.outages.note_alive(now=later(NOW, after_s), outage_at_least_s=HOUR_S, limit=2)


async def test_a_move_that_fails_goes_on_where_it_was(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=5)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(5)]
    await alive(store, 0.0)
    connection = await asyncpg.connect(store.ledger.writes.dsn)
    await connection.execute(REFUSE.format(sent[2].instance_id))

    assert (await alive(store, 7200.0)).moved == 2
    for after_s in (7201.0, 7202.0):
        with pytest.raises(asyncpg.RaiseError):
            await alive(store, after_s)
    await connection.execute("DROP TRIGGER refuse ON instance")
    await connection.close()

    expected = [OutageReport(Seconds(7200.0), 2, more=True), OutageReport(Seconds(7200.0), 1)]
    assert [await alive(store, 7203.0), await alive(store, 7204.0)] == expected
    assert {held.due_at for held in (await read(store, host)).held} == {NOW + DAY_S + 7200.0}
