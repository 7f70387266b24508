"""Tests that of two copies of one client, served by two nodes at once, one gets the tasks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg

from domain.dispatch import RequestWrites, TakeOver
from domain.jobs import InstanceState
from domain.settings import SchedulerSettings
from store.ledger import write_many
from store.postgres import PostgresStore
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, read


async def test_copy_that_waits_for_another_takes_nothing_over(store: PostgresStore) -> None:
    old = await a_registered_host(store)
    same = {"volunteer_id": old.volunteer_id, "host_cpid": old.host.host_cpid}
    first = await a_registered_host(store, account_key=old.account_key, **same)
    second = await a_registered_host(store, account_key=old.account_key, **same)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)
    node = await asyncpg.connect(store.ledger.writes.dsn)
    transaction = node.transaction()
    await transaction.start()
    await node.execute("UPDATE instance SET host_id = $1", first.host_id)

    claim = TakeOver(sent.instance_id, old.host_id)
    ours = asyncio.create_task(store.ledger.write(RequestWrites(second.host, take_over=(claim,))))
    await asyncio.wait([ours], timeout=0.2)
    waited = not ours.done()
    await transaction.commit()
    await node.close()

    assert waited
    assert (await ours).moved == frozenset()
    held = [[one.instance_id for one in (await read(store, host)).held] for host in (old, first, second)]
    assert held == [[], [sent.instance_id], []]


async def test_report_waits_for_the_take_over(store: PostgresStore) -> None:
    """The old record's report is ignored if the instance has moved meanwhile."""
    old = await a_registered_host(store)
    new = await a_registered_host(
        store, account_key=old.account_key, volunteer_id=old.volunteer_id, host_cpid=old.host.host_cpid
    )
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)
    node = await asyncpg.connect(store.ledger.writes.dsn)
    transaction = node.transaction()
    await transaction.start()
    await node.execute("UPDATE instance SET host_id = $1", new.host_id)

    ours = asyncio.create_task(store.ledger.write(RequestWrites(old.host, (a_report(sent),))))
    await asyncio.wait([ours], timeout=0.2)
    waited = not ours.done()
    await transaction.commit()
    await node.close()

    assert waited
    assert (await ours).left_out == {sent.instance_id}


async def test_reports_of_two_records_in_a_group_count_once(store: PostgresStore) -> None:
    """The second is not acknowledged: it was not written."""
    old = await a_registered_host(store)
    same = {"volunteer_id": old.volunteer_id, "host_cpid": old.host.host_cpid}
    unused = await a_registered_host(store, account_key=old.account_key, **same)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, unused)
    error = replace(a_report(sent, to_state=InstanceState.FAILED), host_id=old.host_id)
    claim = TakeOver(sent.instance_id, unused.host_id)
    node = await asyncpg.connect(store.ledger.writes.dsn)

    first, second = await write_many(
        node,
        [RequestWrites(old.host, (error,), take_over=(claim,)), RequestWrites(unused.host, (a_report(sent),))],
        SchedulerSettings(),
    )
    await node.close()

    assert first.moved == {sent.instance_id}
    assert first.left_out == frozenset()
    assert second.left_out == {sent.instance_id}
