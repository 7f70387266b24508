"""The queries of the main path find their rows by key: in a full database, and in one that was empty when they were
planned (a plan is kept while its tables grow)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from domain.batches import Batch
from domain.dispatch import RequestWrites
from store.postgres import PostgresStore, open_store
from store.queries import load
from store.sessions import SESSION
from tests.worlds import a_registered_host, a_report, a_submitted_batch, an_assignment, the_version, waiting_of

LARGE = {"instance", "job", "job_todo", "job_class", "batch_count", "host", "host_app_version", "upload", "volunteer"}

BY_KEY = {  # query -> the indexes it must use
    "who_asks": {"volunteer_authenticator_hash_key", "host_pkey", "host_by_volunteer"},
    "versions_of_hosts": {"host_app_version_pkey"},
    "instances_on_hosts": {"instance_on_host", "job_pkey"},
    "instances_reported": {"instance_pkey", "job_pkey", "upload_pkey"},
    "update_hosts": {"host_pkey"},
    "record_reports": {"instance_pkey"},
    "lock_ended": {"instance_pkey", "instance_on_host"},
    "abort_instances": {"instance_pkey"},
    "lock_unsent": {"instance_pkey", "instance_job_host", "job_pkey"},
    "send_instances": {"instance_pkey"},
    "note_dispatches": {"job_pkey"},
    "sent_jobs": {"instance_pkey", "job_pkey"},
    "change_statistics": {"host_app_version_pkey"},
    "ready_batches": {"batch_in_order", "batch_count_pkey", "batch_count_pkey"},
    "fresh_instances": {"instance_fresh", "instance_job_host", "job_pkey"},
    "urgent_instances": {"instance_urgent", "instance_job_host"},
    "tail_instances": {"instance_fresh"},
    "still_unsent": {"instance_pkey"},
    "unsettled_jobs": {"job_todo_in_order", "job_pkey"},
    "instances_of_jobs": {"instance_job_host", "upload_pkey"},
    "lock_instances_of_jobs": {"instance_job_host"},
    "lock_jobs": {"job_pkey"},
    "lock_marks": {"job_todo_pkey"},
    "step_instances": {"instance_pkey"},
    "settle_jobs": {"job_pkey"},
    "hasten_instances": {"instance_job_host"},
    "insert_instances": {"instance_job_host"},
    "unmark_jobs": {"job_todo_pkey"},
    "complete_batches": {"batch_count_pkey"},
    "overdue_instances": {"instance_by_timeout", "job_pkey"},
    "time_out_instances": {"instance_pkey"},
    "move_open_deadlines": {"instance_by_timeout", "instance_pkey", "host_app_version_pkey"},
    "count_due": {"instance_by_due", "host_app_version_pkey"},
    "record_upload": {"instance_pkey"},
    "job_classes": {"job_class_pkey"},
    "instances_of_job": {"instance_job_host", "upload_pkey"},
}


@pytest.fixture
async def seeded(dsn: str) -> str:
    """20,000 jobs, some of them sent, reported and marked; statistics gathered."""
    store = await open_store(dsn, min_size=1, max_size=2)
    batch = await a_submitted_batch(store, jobs=20_000)
    await send_some(store, batch)
    await store.close()
    connection = await asyncpg.connect(dsn)
    await connection.execute("ANALYZE")
    await connection.close()
    return dsn


async def send_some(store: PostgresStore, batch: Batch) -> None:
    version, waiting = await the_version(store), await waiting_of(store, batch.batch_id)
    for start in range(0, 1000, 50):
        host = await a_registered_host(store)
        sent = [an_assignment(one, host, version) for one in waiting[start : start + 50]]
        await store.ledger.write(RequestWrites(host.host, assignments=tuple(sent)))
        reports = tuple(a_report(assignment) for assignment in sent[:25])
        await store.ledger.write(RequestWrites(host.host, reports=reports))


async def test_queries_planned_in_a_full_database_go_by_key(seeded: str) -> None:
    assert "\n".join(await faults(seeded)) == ""


async def test_queries_planned_in_an_empty_database_go_by_key(dsn: str) -> None:
    assert "\n".join(await faults(dsn)) == ""


async def test_marks_that_are_dead_do_not_slow_the_look_for_jobs(dsn: str) -> None:
    """A look that comes after 50,000 settled jobs, before any vacuum, reads little more than the jobs it finds."""
    store = await open_store(dsn, min_size=1, max_size=2)
    await a_submitted_batch(store, jobs=2000)
    await store.close()
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute("ALTER TABLE job_todo SET (autovacuum_enabled = false)")
    await connection.execute(
        "INSERT INTO job_todo SELECT id, nextval('job_todo_serial') FROM generate_series(1000001, 1050000) AS id"
    )
    await connection.execute("DELETE FROM job_todo")
    await connection.execute("INSERT INTO job_todo SELECT job_id, nextval('job_todo_serial') FROM job")

    await connection.fetch(load("unsettled_jobs"), 100)  # the first look pays, and leaves a note in the index
    plan = (await explained(connection, load("unsettled_jobs").replace("$1", "100")))["Plan"]
    await connection.close()

    assert plan["Actual Rows"] == 100
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 2000
    assert {node["Relation Name"]: node["Actual Rows"] for node in walk(plan) if node.get("Alias") == "job_todo"} == {
        "job_todo": 100
    }


async def test_no_index_stands_in_the_way_of_changing_counters(dsn: str) -> None:
    """An update is HOT, cheap in time and log, only when no column that an index looks at changes."""
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch(
        "SELECT DISTINCT attname FROM pg_depend JOIN pg_index ON objid = indexrelid AND refobjid = indrelid "
        "JOIN pg_attribute ON attrelid = indrelid AND attnum = refobjsubid "
        "WHERE classid = 'pg_class'::regclass AND indrelid = 'batch_count'::regclass "
        "UNION SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
        "WHERE indrelid = 'batch_count'::regclass"
    )
    await connection.close()

    assert {row["attname"] for row in rows} == {"batch_id", "stripe"}


async def explained(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> dict[str, Any]:
    """What running a statement really took."""
    found: dict[str, Any] = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"))[0]
    return found


async def faults(dsn: str) -> list[str]:
    """What is wrong with the plans of the queries, whatever their arguments are."""
    connection = await asyncpg.connect(dsn, server_settings=SESSION | {"plan_cache_mode": "force_generic_plan"})
    found = []
    for name, indexes in BY_KEY.items():
        nodes = list(walk(await plan_of(connection, name)))
        used = {node["Index Name"] for node in nodes if "Index Name" in node}
        scanned = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"} & LARGE
        found += [f"{name} scans {table}" for table in sorted(scanned)]
        found += [f"{name} does not use {index}, but {sorted(used)}" for index in sorted(indexes - used)]
    await connection.close()
    return found


async def plan_of(connection: asyncpg.Connection[asyncpg.Record], name: str) -> dict[str, Any]:
    sql = load(name)
    count = max(int(number) for number in re.findall(r"\$(\d+)", sql))
    await connection.execute(f"PREPARE {name}_plan AS {sql}")
    arguments = ", ".join(["NULL"] * count)
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {name}_plan ({arguments})")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)
