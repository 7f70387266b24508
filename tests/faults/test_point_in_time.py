"""Point-in-time recovery from a base backup and archived WAL restores exactly what was committed by then.

The project then continues with `muster restore`, the live upload folder, and clients with newer state.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest

from administration.checking.inspection import inspect
from domain.jobs import instance_name, output_file_name
from store.migrate import migrate
from store.postgres import open_store
from tests.acceptance.clocks import ForwardClock
from tests.acceptance.host import RIGHT
from tests.acceptance.server import LiveServer
from tests.builders import NOW
from tests.e2e.server import Server
from tests.e2e.stock_client import wait_for
from tests.faults.cluster import cluster
from tests.faults.servers import DatabaseServer
from tests.faults.test_restore import INSTANCES, complete, given, uploaded
from tests.faults.waiting import until
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report
from wire.uploads import STATUS_NEVER

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
    """A folder below /tmp: pytest's folders are not accessible to the database's user."""
    with tempfile.TemporaryDirectory(prefix="muster-point-in-time-", dir="/tmp") as made:
        Path(made).chmod(0o777)
        wal = Path(made) / "wal"
        wal.mkdir()
        wal.chmod(0o777)
        yield Path(made)


@pytest.fixture
def servers(folder: Path) -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    """A server that archives its WAL, and the folder of the restored one."""
    both = DatabaseServer("a", folder), DatabaseServer("b", folder)
    try:
        both[0].initialise()
        configure(both[0], ARCHIVING.format(wal=folder / "wal"))
        both[0].start()
        yield both
    finally:
        for server in both:
            server.stop()


async def recover(folder: Path, first: DatabaseServer, second: DatabaseServer, moment: datetime) -> None:
    """Replace the first server by the second, recovered to a moment; return when it accepts writes."""
    connection = await asyncpg.connect(first.dsn("muster"))
    segment = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
    await connection.close()
    await asyncio.to_thread(wait_for, (folder / "wal" / segment).exists, 30, "the archived log")
    first.kill()

    configure(second, RESTORING.format(wal=folder / "wal", moment=moment.isoformat(sep=" ")))
    (second.data / "standby.signal").rename(second.data / "recovery.signal")
    await asyncio.to_thread(second.start)
    there = await asyncpg.connect(second.dsn("muster"))

    async def writes() -> bool:
        return not await there.fetchval("SELECT pg_is_in_recovery()")

    try:
        await until(writes, 30, "the end of the recovery")
    finally:
        await there.close()


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
        await connection.close()
    finally:
        await store.close()
    await recover(folder, first, second, moment)

    restored = await open_store(second.dsn("muster"), min_size=1, max_size=2)
    try:
        there = await asyncpg.connect(second.dsn("muster"))
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


@pytest.mark.faults
async def test_a_project_at_a_moment_wastes_nothing(
    tmp_path: Path, keys_dir: Path, folder: Path, servers: tuple[DatabaseServer, DatabaseServer]
) -> None:
    """`muster restore` with the live upload folder: only reports after the moment are lost."""
    first, second = servers
    await asyncio.to_thread(first.create_database, "muster")
    dsn, new_dsn = first.dsn("muster"), second.dsn("muster")
    await migrate(dsn, now=NOW)
    async with cluster(tmp_path, keys_dir, dsn, nodes=1) as made:
        [node] = made.nodes
        await made.server.add_app()
        batch_id = await made.server.submit(jobs={"count": 12})
        reporting, losing, sent_later = [await made.server.add_host(f"host{n}") for n in range(3)]
        await asyncio.to_thread(second.copy, first)  # the base backup
        await reporting.work((await given(reporting, 1))[0])
        [kept] = await given(reporting, 1)
        [lost] = await given(losing, 1)
        connection = await asyncpg.connect(dsn)
        moment = await connection.fetchval("SELECT clock_timestamp()")
        await connection.close()

        await reporting.upload(kept, b"kept\n")  # acknowledged; reported after the recovery
        await losing.work(lost, b"first run\n")  # reported; the recovered database awaits it again
        old = await given(sent_later, 3)  # unsent at the moment
        assert (await sent_later.upload(old[0])).status == 0
        await made.server.submit(jobs={"count": 3})  # after the moment
        node.kill()
        await recover(folder, first, second, moment)

        restored = Server(node.data_dir, port=node.port, environment={"MUSTER_DATABASE_URL": new_dsn})
        made.nodes.append(restored)
        told = await asyncio.to_thread(restored.json, "restore")
        assert (told["new_ids"]["instances"], told["recorded"], told["set_aside"]) == (9, 2, 1)
        await asyncio.to_thread(restored.muster, "check", "--contents")
        await asyncio.to_thread(restored.start)

        store = await open_store(new_dsn, clock=ForwardClock(), min_size=1, max_size=2)
        server = LiveServer(made.project, restored.url, ForwardClock(), store, made.server.http)
        try:
            for task in old:
                assert (await sent_later.upload(task)).status == STATUS_NEVER
                uploaded(sent_later, task, RIGHT)
            uploaded(reporting, kept, b"kept\n")
            new_batch = await server.submit(jobs={"count": 10})
            await complete(made, server, [batch_id, new_batch], [reporting, losing, sent_later])
        finally:
            await store.close()
        await asyncio.to_thread(restored.muster, "check", "--contents")

    connection = await asyncpg.connect(new_dsn)
    try:
        states = [row["state"] for row in await connection.fetch(INSTANCES)]
        assert states == ["valid"] * 22
    finally:
        await connection.close()
