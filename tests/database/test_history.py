"""Tests that the busy tables stay small, and that moving and purging lose nothing under concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

import asyncpg

from domain.dispatch import InstanceStep, RequestWrites
from domain.errors import UnavailableError
from domain.history import START, month_of
from domain.jobs import InstanceState
from domain.settlement import JobSettlement
from domain.units import InstanceId, Instant, later
from store.pool import SESSION
from store.postgres import PostgresStore, open_store
from store.queries import load
from store.sweeping import PostgresHistory
from tests.builders import NOW
from tests.database.blocking import until_blocked
from tests.database.plans import blocks, explained, plan_of, walk
from tests.facts import states
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch

S = InstanceState
DAY_S = 86400.0
MONTH = month_of(NOW)
ROUND_JOBS = 3_000
BUSY = ("instance", "job", "instance_stderr", "upload")
END_EVERYTHING = """
    UPDATE instance SET
        state = 'valid', host_id = 1, volunteer_id = 1, app_version_id = 1, sent_at = created_at,
        due_at = created_at + 1,
        timeout_at = created_at + 1, reported_at = created_at + 1
    WHERE state = 'unsent';
    INSERT INTO instance_stderr SELECT instance_id, repeat('oh ', 30) FROM instance;
    INSERT INTO upload SELECT instance_id, 'pi_' || instance_id || '_r0', 7, repeat('c', 32), 0 FROM instance;
    UPDATE job SET state = 'valid', canonical_instance_id = 1, ended_at = 1 WHERE state = 'open';
    INSERT INTO duty (name, done_at) VALUES ('count due', 1e10) ON CONFLICT DO NOTHING;
"""


@asynccontextmanager
async def opened_store_of(dsn: str) -> AsyncIterator[PostgresStore]:
    store = await open_store(dsn, min_size=1, max_size=3)
    try:
        yield store
    finally:
        await store.close()


def a_time_out(instance_id: InstanceId) -> InstanceStep:
    return InstanceStep(instance_id, S.IN_PROGRESS, S.TIMED_OUT)


async def settle_all(store: PostgresStore) -> None:
    """Remove all marks; jobs stay unchanged."""
    facts = await store.unsettled.unsettled(99, now=NOW)
    settlements = [JobSettlement(one.job_id, one.serial, one.state, NOW) for one in facts]
    assert await store.unsettled.settle(settlements) == len(settlements)


async def end_everything(connection: asyncpg.Connection[asyncpg.Record], ended_at: Instant) -> None:
    """End every job and every batch."""
    await connection.execute(END_EVERYTHING)
    await connection.execute("UPDATE batch SET state = 'complete', ended_at = $1 WHERE state = 'active'", ended_at)


async def move_all(store: PostgresStore, limit: int = 500) -> int:
    """Return how many jobs were moved."""
    moved, after = 0, START
    while (step := await store.history.move_ended(before=later(NOW, 900 * DAY_S), after=after, limit=limit)).more:
        moved, after = moved + step.jobs, step.after
    return moved


async def busy_bytes(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    for table in BUSY:
        await connection.execute(f"VACUUM {table}")
    return sum([await connection.fetchval("SELECT pg_total_relation_size($1::regclass)", table) for table in BUSY])


async def test_busy_tables_stop_growing_with_history(dsn: str) -> None:
    """Ten months of 3,000 jobs each: the history grows every month, the busy tables do not."""
    connection = await asyncpg.connect(dsn)
    one_month, sizes, looks = 0, [], []
    async with opened_store_of(dsn) as store:
        for month in range(10):
            await a_submitted_batch(store, jobs=ROUND_JOBS)
            await end_everything(connection, later(NOW, 31 * DAY_S * month))
            one_month = one_month or await busy_bytes(connection)
            assert await move_all(store) == ROUND_JOBS
            sizes.append(await busy_bytes(connection))
            looks.append(await blocks_of_a_look(dsn))
        months = await store.history.months()
    rows = {table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in BUSY}
    await connection.close()

    assert rows == dict.fromkeys(BUSY, 0)
    assert [(one.jobs, one.instances, one.files, one.file_bytes) for one in months] == 10 * [
        (ROUND_JOBS, ROUND_JOBS, ROUND_JOBS, 7 * ROUND_JOBS)
    ]
    assert max(sizes) < 3 * one_month  # vacuumed space is reused
    assert median(looks) <= 20  # an open snapshot may keep dead rows from one vacuum
    assert min(one.table_bytes for one in months) > 500_000


async def blocks_of_a_look(dsn: str) -> int:
    """Return the blocks read by the search for the next ended batch, among all batches."""
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    sql = load("ended_jobs")
    for number, value in enumerate(("1e10", "0", "0", "500"), start=1):
        sql = sql.replace(f"${number}", value)
    plan = (await explained(connection, sql))["Plan"]
    await connection.close()
    return blocks(plan)


async def test_search_for_ended_work_does_not_grow_with_batches(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with opened_store_of(dsn) as store:
        await a_submitted_batch(store, jobs=1)
        looks = []
        for batches in (10, 1000):
            await connection.execute(
                "INSERT INTO batch (submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, "
                "order_key, logical_start_at, logical_end_at, batch_flop, ended_at) "
                "SELECT 1, 1, 1, 'throughput', 'complete', 1, 0, 0, 0, 0, 0, 1, 5 FROM generate_series(1, $1)",
                batches,
            )
            await connection.execute("VACUUM ANALYZE batch")
            looks.append(await blocks_of_a_look(dsn))
    await connection.close()

    assert looks[1] <= looks[0] + 3


async def test_a_listing_reads_only_the_month_in_which_its_batch_ended(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with opened_store_of(dsn) as store:
        batches = []
        for month in range(3):
            batches.append(await a_submitted_batch(store, jobs=20))
            await end_everything(connection, later(NOW, 31 * DAY_S * month))
            await move_all(store)
        sql = load("list_finished_jobs").replace("$1", str(batches[1].batch_id)).replace("$2", "10").replace("$3", "0")
        plan = (await explained(connection, sql))["Plan"]
    await connection.close()

    read = {node["Relation Name"] for node in walk(plan) if "Relation Name" in node and node["Actual Loops"] > 0}
    assert read - {"job_template"} == {"batch", f"finished_job_{month_of(later(NOW, 31 * DAY_S)).replace('-', '_')}"}


async def test_no_query_of_a_request_or_a_refill_looks_at_the_history(dsn: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    touched = set()
    for name in ("instances_reported", "lock_claimed", "write_group", "fresh_instances"):
        nodes = list(walk(await plan_of(connection, name)))
        touched |= {node["Relation Name"] for node in nodes if "Relation Name" in node}
    await connection.close()

    assert {name for name in touched if name.startswith("finished")} == set()


# ---------------------------------------------------------------- others at work


async def test_report_during_move_finds_instance_gone(store: PostgresStore) -> None:
    """The other report in the same request is recorded; the late one changes nothing."""
    host = await a_registered_host(store)
    old = await a_submitted_batch(store, jobs=1)
    late = await a_sent_instance(store, old.batch_id, host)
    new = await a_submitted_batch(store, jobs=1)
    fresh = await a_sent_instance(store, new.batch_id, host)
    await store.overdue.time_out([a_time_out(late.instance_id)], now=later(NOW, 2 * DAY_S))
    await store.submissions.abort_batch(old.batch_id, now=NOW)
    await store.overdue.count_due(now=later(NOW, 9 * DAY_S))
    await settle_all(store)

    connection = await asyncpg.connect(store.history._database.dsn)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SELECT FROM instance WHERE instance_id = $1 FOR UPDATE", late.instance_id)
    moving = asyncio.create_task(move_all(store))
    await until_blocked(connection, 1, moving)
    writes = RequestWrites(
        host.host, reports=(a_report(late, from_state=S.TIMED_OUT), a_report(fresh, stderr="no", to_state=S.FAILED))
    )
    writing = asyncio.create_task(store.ledger.write(writes))
    await until_blocked(connection, 2, moving, writing)
    await transaction.rollback()
    await connection.close()

    assert await moving == 1
    await writing
    assert [one.state for one in (await store.views.job(late.job_id)).instances] == [S.TIMED_OUT]
    assert [one.state for one in (await store.views.job(fresh.job_id)).instances] == [S.FAILED]


async def test_a_report_that_comes_first_keeps_its_job_busy(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    old = await a_submitted_batch(store, jobs=1)
    late = await a_sent_instance(store, old.batch_id, host)
    await store.overdue.time_out([a_time_out(late.instance_id)], now=later(NOW, 2 * DAY_S))
    await store.submissions.abort_batch(old.batch_id, now=NOW)
    await store.overdue.count_due(now=later(NOW, 9 * DAY_S))
    await settle_all(store)

    await asyncio.gather(
        store.ledger.write(RequestWrites(host.host, reports=(a_report(late, from_state=S.TIMED_OUT),))),
        move_all(store),
    )

    [instance] = (await store.views.job(late.job_id)).instances
    assert instance.state in (S.REPORTED, S.TIMED_OUT)
    marked = [facts.job_id for facts in await store.unsettled.unsettled(9, now=NOW)]
    assert marked == ([late.job_id] if instance.state is S.REPORTED else [])


async def test_moves_and_purges_at_once_lose_nothing(store: PostgresStore) -> None:
    connection = await asyncpg.connect(store.history._database.dsn)
    for _ in range(3):
        await a_submitted_batch(store, jobs=50)
    await end_everything(connection, NOW)

    moved = await asyncio.gather(
        move_all(store, limit=7), move_all(store, limit=11), store.history.purge_month(MONTH, now=NOW)
    )

    [month] = await store.history.months()
    kept = await connection.fetchval("SELECT count(*) FROM finished_job")
    await connection.execute("UPDATE finished_month SET purged_at = 1")  # these jobs were never counted as done
    await connection.close()
    assert sum(count for count in moved if count is not None) == 150
    assert month.jobs == month.instances == kept


async def test_month_being_read_is_purged_later(store: PostgresStore) -> None:
    connection = await asyncpg.connect(store.history._database.dsn)
    batch = await a_submitted_batch(store, jobs=1)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    await move_all(store)
    impatient = PostgresHistory(store.history._database)
    await connection.execute("ALTER FUNCTION drop_finished_month SET lock_timeout = '20ms'")
    async with connection.transaction():
        await connection.fetch("SELECT FROM finished_job")

        with states(UnavailableError, f"history of {MONTH}", "being read"):
            await impatient.purge_month(MONTH, now=NOW)

    await impatient.purge_month(MONTH, now=NOW)
    assert await connection.fetchval("SELECT count(*) FROM finished_job") == 0
    await connection.close()
