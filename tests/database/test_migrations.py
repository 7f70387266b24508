"""A database comes to the present schema, whichever way it takes."""

from __future__ import annotations

import re

import asyncpg
import pytest

from domain.bounds import FURTHEST_S, LONGEST_S
from domain.submission import JobTemplate, NewJob
from domain.units import BatchId, Instant, JobId
from store.migrate import (
    InUseError,
    Migration,
    NodesRunningError,
    SchemaVersionError,
    migrate,
    migrations,
    statements,
)
from store.pool import connect
from store.postgres import open_store
from tests.builders import NOW, a_job_class
from tests.pg import database, empty_database
from tests.worlds import a_new_batch, a_registered_app

COLUMNS = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default, is_identity
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2
"""
OPTIONS = "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
VIEWS = "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1"
FUNCTIONS = """
    SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1
"""
TRIGGERS = "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1"
LOCKS = """
    SELECT DISTINCT relation::regclass::text AS name FROM pg_locks
    WHERE pid = pg_backend_pid() AND relation = ANY($1::oid[]) AND relation >= 16384
        AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    ORDER BY name
"""
FIRST_ROWS = "SELECT 'account', name FROM account UNION ALL SELECT 'plan class', name FROM plan_class ORDER BY 1, 2"


# Two jobs of a batch wait, in two shards, and a third has been sent in time.
WORK_AT_6 = """
    INSERT INTO volunteer (email, authenticator_nonce, authenticator_hash, created_at)
    VALUES ('ada@example.org', '', decode(repeat('00', 32), 'hex'), 0);
    INSERT INTO app (name) VALUES ('app');
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop
    ) VALUES (1, 1, 1, 'throughput', 'active', 3, 0, 0, 0, 0, 0, 1);
    INSERT INTO job_class (
        batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
        max_instances, validator
    ) VALUES (1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 'accept');
    INSERT INTO job (batch_id, job_class_id, first_sent_at) VALUES (1, 1, NULL), (1, 1, NULL), (1, 1, 5);
    INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at)
    SELECT job_id, 1, 1, job_id % 64, 0 FROM job WHERE first_sent_at IS NULL;
    INSERT INTO instance (
        job_id, batch_id, job_class_id, shard, state, created_at, host_id, volunteer_id, app_version_id, sent_at,
        due_at, timeout_at
    ) VALUES (3, 1, 1, 3, 'in_progress', 0, 1, 1, 1, 5, 10, 11);
    INSERT INTO batch_count (batch_id, shard, unsent) VALUES (1, 1, 1), (1, 2, 1);
    INSERT INTO batch_count (batch_id, shard, in_progress, sent) VALUES (1, 3, 1, 1);
"""


async def run(connection: asyncpg.Connection[asyncpg.Record], migration: Migration) -> None:
    for sql in statements(migration.sql()) if migration.concurrent else [migration.sql()]:
        await connection.execute(sql)


async def old_database(dsn: str, version: int, work: str = "") -> None:
    """Give an empty database the schema of an older version, and what was in it."""
    connection = await asyncpg.connect(dsn)
    for migration in migrations():
        if migration.version <= version:
            await run(connection, migration)
            await connection.execute("INSERT INTO schema_version VALUES ($1, $2, 0)", migration.version, migration.name)
    if work:
        await connection.execute(work)
    await connection.close()


async def described(dsn: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = []
        for query in (COLUMNS, INDEXES, CONSTRAINTS, OPTIONS, VIEWS, FUNCTIONS, TRIGGERS, FIRST_ROWS):
            rows += [tuple(row) for row in await connection.fetch(query)]
        return rows
    finally:
        await connection.close()


async def test_schema_equals_the_sum_of_the_migrations() -> None:
    async with database() as installed, empty_database() as migrated:
        connection = await asyncpg.connect(migrated)
        for migration in migrations():
            await run(connection, migration)
        await connection.close()

        assert await described(installed) == await described(migrated)


async def test_pre_migrations_of_later_numbers_do_not_need_a_post_one() -> None:
    last_stop = max(migration.version for migration in migrations() if migration.phase == "stop")
    later = [migration for migration in migrations() if migration.version > last_stop]
    async with database() as installed, empty_database() as migrated:
        await old_database(migrated, last_stop)
        names = await migrate(migrated, now=NOW, pre_only=True)
        assert names == [migration.name for migration in later if migration.phase == "pre"]

        store = await open_store(migrated, min_size=1, max_size=1)
        await store.close()
        names = await migrate(migrated, now=NOW)
        assert names == [migration.name for migration in later if migration.phase == "post"]
        assert await described(installed) == await described(migrated)


async def test_an_old_database_with_work_is_brought_up_and_serves() -> None:
    async with empty_database() as dsn:
        await old_database(dsn, 6, WORK_AT_6)
        with pytest.raises(SchemaVersionError, match="stop every node, then run `muster migrate`"):
            await open_store(dsn)

        applied = await migrate(dsn, now=NOW)
        store = await open_store(dsn, min_size=1, max_size=1)
        try:
            [ready] = await store.waiting.ready_batches(10)
            counts = await store.views.check_counters()
        finally:
            await store.close()

    assert applied == [migration.name for migration in migrations() if migration.version > 6]
    assert (ready.batch_id, ready.counts.unsent, ready.counts.jobs_total) == (1, 2, 3)
    assert counts == []


# As a submitter could have it before fields had bounds: a batch, its class, an instance that is out.
ABSURD_AT_64 = """
    INSERT INTO app (name) VALUES ('pi');
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, charged_s, batch_flop, deadline_at, job_pe
    ) VALUES (1, 1, 1, 'short_deadline', 'active', 1, 0, 0, 0, 0, 1e194, 1e194, 1e200, 1e300, 1e300);
    INSERT INTO job_class (
        batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
        max_instances, validator
    ) VALUES (1, 1e200, 1e201, 1e300, 1e300, 1e300, 1e300, 1, 1, 1, 'accept');
    INSERT INTO job (batch_id, job_class_id) VALUES (1, 1);
    INSERT INTO instance (
        job_id, batch_id, job_class_id, shard, state, created_at, host_id, volunteer_id, app_version_id, sent_at,
        due_at, timeout_at
    ) VALUES (1, 1, 1, 1, 'in_progress', 0, 1, 1, 1, 5, 1e300, 1e300);
    INSERT INTO batch_count (batch_id, stripe, in_progress, sent) VALUES (1, 0, 1, 1);
    UPDATE submitter SET logical_at = 1e194, shares = 1e300;
    UPDATE plan_class SET ncpus = 1e300;
"""


async def test_absurd_values_are_brought_within_bounds() -> None:
    async with empty_database() as dsn:
        await old_database(dsn, 64, ABSURD_AT_64)
        await migrate(dsn, now=NOW)
        store = await open_store(dsn, min_size=1, max_size=1)
        try:
            [job_class] = await store.views.classes_of_batch(BatchId(1))
            batch = await store.views.batch(BatchId(1))
            [instance] = (await store.views.job(JobId(1))).instances
            submitter = await store.people.submitter("default")
            plan_classes = await store.applications.plan_classes()
        finally:
            await store.close()

    assert (job_class.fpops_est_flop, job_class.fpops_bound_flop) == (1e21, 1e24)
    assert (job_class.memory_bytes, job_class.disk_bytes, job_class.ncpus) == (1e15, 1e15, 4096.0)
    assert job_class.delay_bound_s == LONGEST_S
    assert (batch.deadline_at, batch.job_pe, batch.logical_end_at) == (Instant(FURTHEST_S), 1e6, Instant(2e11))
    assert (instance.due_at, submitter.logical_at, submitter.shares) == (Instant(5 + LONGEST_S), Instant(0.0), 1e9)
    assert {one.ncpus for one in plan_classes.values()} == {4096.0}


async def test_no_template_is_written_while_old_nodes_may_serve() -> None:
    """They read the command line of the job alone: before 0104 it is written there."""
    before = max(one.version for one in migrations() if one.version < 104 and one.phase == "pre")
    async with empty_database() as dsn:
        await old_database(dsn, before)
        await migrate(dsn, now=NOW, pre_only=True)
        connection = await asyncpg.connect(dsn)
        store = await open_store(dsn, min_size=1, max_size=1)
        text_of_job = "SELECT command_line, number FROM job WHERE batch_id = $1"
        found = []
        try:
            app = await a_registered_app(store)
            for _ in range(2):
                async with store.submissions.submission() as writer:
                    batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id, jobs_total=1))
                    [class_id] = await writer.add_classes(batch_id, [a_job_class()])
                    await writer.add_jobs(batch_id, [NewJob(class_id, template=JobTemplate("job {i}"), number=7)])
                found.append(await connection.fetchrow(text_of_job, batch_id))
                await migrate(dsn, now=NOW)
        finally:
            await store.close()
            await connection.close()

    assert [tuple(row) for row in found if row is not None] == [("job 7", None), ("", 7)]


async def test_nothing_is_changed_where_nodes_have_to_be_stopped() -> None:
    async with empty_database() as dsn:
        await old_database(dsn, 5)
        with pytest.raises(NodesRunningError, match="0007_stop_counter_stripes"):
            await migrate(dsn, now=NOW, pre_only=True)
        node = await connect(dsn)
        with pytest.raises(NodesRunningError, match="1 of their connections are open: stop every node"):
            await migrate(dsn, now=NOW)
        await node.close()

        assert "0006_pre_host_statistics.sql" in await migrate(dsn, now=NOW)


@pytest.mark.parametrize(
    ("version", "table"), [(20, "batch"), (22, "batch_count"), (23, "app_changes"), (24, "app_changes")]
)
async def test_a_migration_keeps_one_table_from_others(version: int, table: str) -> None:
    """Nodes that serve lock batches and counters in either order: a migration that kept both would meet them."""
    async with empty_database() as dsn:
        await old_database(dsn, version - 1)
        connection = await asyncpg.connect(dsn)
        tables = {row["oid"] for row in await connection.fetch("SELECT oid FROM pg_class WHERE relkind = 'r'")}
        async with connection.transaction():
            await connection.execute(next(one for one in migrations() if one.version == version).sql())
            kept = await connection.fetch(LOCKS, tables)
        await connection.close()

    assert [row["name"] for row in kept] == [table]


async def test_a_migration_that_waits_for_a_long_reader_lets_others_pass() -> None:
    """As while a backup is made: it waits 2 s, lets go, and is done when the reader has ended."""
    async with empty_database() as dsn:
        await old_database(dsn, 19)
        reader, other = [await asyncpg.connect(dsn, server_settings={"application_name": "backup"}) for _ in range(2)]
        reading = reader.transaction()
        await reading.start()
        await reader.fetch("SELECT count(*) FROM batch")
        told = []

        async def busy(why: str) -> None:
            told.append(why)
            await other.execute("SET statement_timeout = '1s'")
            await other.fetch("SELECT count(*) FROM batch")
            await reading.rollback()

        applied = await migrate(dsn, now=NOW, busy=busy)
        await reader.close()
        await other.close()

    assert applied == [migration.name for migration in migrations() if migration.version > 19]
    [line] = told
    assert re.fullmatch(
        r"0020_pre_waiting_batches.sql has to wait: a table it changes is in use; "
        r"the oldest transaction is of backup \(process \d+\), since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
        line,
    )


async def test_whoever_cannot_wait_for_a_table_is_told_who_has_it() -> None:
    async with empty_database() as dsn:
        await old_database(dsn, 19)
        reader = await asyncpg.connect(dsn)
        async with reader.transaction():
            await reader.fetch("SELECT count(*) FROM batch")
            with pytest.raises(InUseError, match=r"0020_pre_waiting_batches.sql has to wait: .*run `muster migrate`"):
                await migrate(dsn, now=NOW)
        await reader.close()


async def test_old_code_starts_on_a_database_prepared_for_newer(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO schema_version VALUES (9999, '9999_pre_from_the_future.sql', 0)")
    await connection.close()

    store = await open_store(dsn, min_size=1, max_size=1)
    await store.close()


async def test_migrating_twice_changes_nothing(dsn: str) -> None:
    assert await migrate(dsn, now=NOW) == []


async def test_a_fresh_database_is_installed_whole() -> None:
    async with empty_database() as dsn:
        assert await migrate(dsn, now=NOW) == ["schema.sql"]
        store = await open_store(dsn, min_size=1, max_size=1)
        await store.close()


async def test_an_empty_database_is_refused_with_what_to_do() -> None:
    async with empty_database() as dsn:
        with pytest.raises(SchemaVersionError, match="run `muster migrate`"):
            await open_store(dsn)


async def test_a_newer_database_is_refused(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO schema_version VALUES (9999, 'from the future', 0)")
    await connection.close()

    with pytest.raises(SchemaVersionError, match="version 9999"):
        await open_store(dsn)
    with pytest.raises(SchemaVersionError, match="version 9999"):
        await migrate(dsn, now=NOW)
