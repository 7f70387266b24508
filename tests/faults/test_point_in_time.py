"""A base backup and the archived log bring the database back to a moment: all that was committed by then, no more."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from administration.checking.inspection import inspect
from domain.jobs import instance_name, output_file_name
from store.migrate import migrate
from store.postgres import open_store
from tests.builders import NOW
from tests.e2e.stock_client import wait_for
from tests.faults.servers import DatabaseServer
from tests.faults.waiting import until
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

BROUGHT = "INSERT INTO upload (instance_id, name, nbytes, md5, completed_at) VALUES ($1, $2, 7, repeat('c', 32), $3)"
ARCHIVING = """
synchronous_standby_names = ''
archive_mode = on
archive_command = 'test ! -f {wal}/%f && cp %p {wal}/%f'
"""
RESTORING = """
archive_mode = off
restore_command = 'cp {wal}/%f %p'
recovery_target_time = '{moment}'
recovery_target_action = 'promote'
"""


def configure(server: DatabaseServer, text: str) -> None:
    with (server.data / "postgresql.auto.conf").open("a") as config:
        config.write(text)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Below /tmp: pytest's folders are closed to the database's user."""
    with tempfile.TemporaryDirectory(prefix="muster-point-in-time-", dir="/tmp") as made:
        Path(made).chmod(0o777)
        wal = Path(made) / "wal"
        wal.mkdir()
        wal.chmod(0o777)
        yield Path(made)


@pytest.fixture
def servers(folder: Path) -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    """A server that archives its log, and the place of the one that is restored."""
    both = DatabaseServer("a", folder), DatabaseServer("b", folder)
    try:
        both[0].initialise()
        configure(both[0], ARCHIVING.format(wal=folder / "wal"))
        both[0].start()
        yield both
    finally:
        for server in both:
            server.stop()


@pytest.mark.faults
async def test_a_database_comes_back_to_a_moment(folder: Path, servers: tuple[DatabaseServer, DatabaseServer]) -> None:
    first, second = servers
    await asyncio.to_thread(first.create_database, "muster")
    dsn = first.dsn("muster")
    await migrate(dsn, now=NOW)
    store = await open_store(dsn, min_size=1, max_size=2)
    try:
        batch = await a_submitted_batch(store, jobs=4)
        host = await a_registered_host(store)
        await asyncio.to_thread(second.copy, first)  # the base backup

        kept = await a_sent_instance(store, batch.batch_id, host)
        connection = await asyncpg.connect(dsn)
        output = output_file_name(instance_name("pi", batch.batch_id, kept.job_id, kept.instance_id), 0)
        await connection.execute(BROUGHT, kept.instance_id, output, NOW)
        await report(store, host, a_report(kept))
        moment = await connection.fetchval("SELECT clock_timestamp()")
        mistake = await a_submitted_batch(store, jobs=2)
        await connection.execute("DELETE FROM upload; UPDATE batch SET name = 'overwritten'")
        segment = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
        await connection.close()
    finally:
        await store.close()
    await asyncio.to_thread(wait_for, (folder / "wal" / segment).exists, 30, "the archived log")
    first.kill()

    configure(second, RESTORING.format(wal=folder / "wal", moment=moment.isoformat(sep=" ")))
    (second.data / "standby.signal").rename(second.data / "recovery.signal")
    await asyncio.to_thread(second.start)

    restored = await open_store(second.dsn("muster"), min_size=1, max_size=2)
    try:
        there = await asyncpg.connect(second.dsn("muster"))

        async def writes() -> bool:
            return not await there.fetchval("SELECT pg_is_in_recovery()")

        await until(writes, 30, "the end of the recovery")
        rows = await there.fetch("SELECT batch_id, name FROM batch ORDER BY batch_id")
        await there.close()
        assert [(row["batch_id"], row["name"]) for row in rows] == [(batch.batch_id, batch.name)]
        assert mistake.batch_id != batch.batch_id
        assert (await restored.views.batch(batch.batch_id)).counts.unsent == 3
        async with restored.checking.session() as session:
            inspected = await inspect(session, None, limit=10, contents=False, progress=lambda *_: None)
        assert not inspected.found, inspected.text()
        again = await a_sent_instance(restored, batch.batch_id, host)  # it goes on
        assert again.instance_id != kept.instance_id
    finally:
        await restored.close()
