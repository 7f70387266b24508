"""A project continues from a backup, with clients and an upload folder newer than its database."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from demo.load.jobs import VolunteerTask
from domain.dispatch import ReportedFile
from domain.units import BatchId
from store.postgres import open_store
from tests.acceptance.clocks import ForwardClock
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import LiveServer
from tests.e2e.server import Server
from tests.faults.cluster import Cluster, cluster
from tests.faults.waiting import until
from tests.pg import empty_database
from wire.messages import STATE_UPLOADED
from wire.uploads import STATUS_NEVER

DEPLOY = Path(__file__).parents[2] / "deploy"
INSTANCES = """
    SELECT state, host_id, instance_id, reason FROM instance
    UNION ALL SELECT state, host_id, instance_id, reason FROM finished_instance
"""


def script(name: str, dsn: str, *arguments: Path) -> None:
    environment = {**os.environ, "MUSTER_DATABASE_URL": dsn, "MUSTER_PYTHON": sys.executable}
    command = ["bash", str(DEPLOY / name), *map(str, arguments)]
    subprocess.run(command, capture_output=True, timeout=100, check=True, env=environment)


async def given(host: Host, count: int) -> list[VolunteerTask]:
    """So many more tasks in progress at the host."""
    before = set(host.held)

    async def has_them() -> bool:
        if len(set(host.held) - before) < count:
            await host.ask(count - len(set(host.held) - before))
        return len(set(host.held) - before) >= count

    await until(has_them, 20, "tasks for the host")
    return [task for name, task in host.held.items() if name not in before]


def uploaded(host: Host, task: VolunteerTask, content: bytes) -> None:
    """The host reports the task with its next call; the output is uploaded already."""
    [name] = task.tokens
    host.end(task, STATE_UPLOADED, files=(ReportedFile(name, len(content), hashlib.md5(content).hexdigest()),))


async def complete(made: Cluster, server: LiveServer, batches: Sequence[BatchId], hosts: Sequence[Host]) -> None:
    """Run hosts until the batches are complete."""

    async def done() -> bool:
        for number, host in enumerate(hosts):
            await host.ask(4)
            for task in list(host.held.values()):
                await host.work(task, RIGHT + f"of {host.host_id}, {number}".encode())
        return {str((await server.store.views.batch(one)).state) for one in batches} == {"complete"}

    await until(done, 60, "the batches are complete")


@pytest.mark.parametrize("live_folder", [True, pytest.param(False, marks=pytest.mark.faults)])
async def test_a_restored_project_wastes_nothing(tmp_path: Path, keys_dir: Path, dsn: str, live_folder: bool) -> None:
    """The later of two backups is restored: with the live upload folder (point in time), and with its own."""
    async with cluster(tmp_path, keys_dir, dsn, nodes=1) as made, empty_database() as new_dsn:
        [node] = made.nodes
        await made.server.add_app()
        batch_id = await made.server.submit(jobs={"count": 12})
        reporting, losing, sent_later = [await made.server.add_host(f"host{n}") for n in range(3)]
        await asyncio.to_thread(script, "backup.sh", dsn, node.data_dir, tmp_path / "backup")
        await reporting.work((await given(reporting, 1))[0])
        [kept] = await given(reporting, 1)
        [lost] = await given(losing, 1)
        await asyncio.to_thread(script, "backup.sh", dsn, node.data_dir, tmp_path / "backup")

        await reporting.upload(kept, b"kept\n")  # acknowledged; reported after the restore
        await losing.work(lost, b"first run\n")  # reported; the restored database awaits it again
        old = await given(sent_later, 3)  # unsent in the backup
        assert (await sent_later.upload(old[0])).status == 0
        await made.server.submit(jobs={"count": 3})  # not in the backup
        node.kill()

        await asyncio.to_thread(script, "restore.sh", new_dsn, tmp_path / "backup", tmp_path / "new")
        if live_folder:
            shutil.rmtree(tmp_path / "new" / "files")
            (tmp_path / "new" / "files").symlink_to(node.data_dir / "files")
        restored = Server(tmp_path / "new", port=node.port, environment={"MUSTER_DATABASE_URL": new_dsn})
        made.nodes.append(restored)
        await asyncio.to_thread(restored.muster, "migrate")
        told = await asyncio.to_thread(restored.json, "restore")
        assert told["new_ids"]["instances"] == 9
        assert (told["recorded"], told["set_aside"]) == ((2, 1) if live_folder else (0, 0))
        await asyncio.to_thread(restored.muster, "check", "--contents")
        await asyncio.to_thread(restored.start)

        store = await open_store(new_dsn, clock=ForwardClock(), min_size=1, max_size=2)
        server = LiveServer(made.project, restored.url, ForwardClock(), store, made.server.http)
        try:
            for task in old:
                assert (await sent_later.upload(task)).status == STATUS_NEVER
                uploaded(sent_later, task, RIGHT)
            if not live_folder:
                assert (await reporting.upload(kept, b"kept\n")).status == 0  # its file was lost with the folder
            uploaded(reporting, kept, b"kept\n")
            new_batch = await server.submit(jobs={"count": 10})
            hosts = [reporting, losing, sent_later]
            await complete(made, server, [batch_id, new_batch], hosts)
        finally:
            await store.close()
        await asyncio.to_thread(restored.muster, "check", "--contents")

        connection = await asyncpg.connect(new_dsn)
        try:
            instances = [dict(row) for row in await connection.fetch(INSTANCES)]
            assert [one for one in instances if one["state"] != "valid"] == []
            assert len(instances) == 22
        finally:
            await connection.close()
