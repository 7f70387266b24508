"""A background process or its whole node freezes: another one takes over its periodic tasks within a minute."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncpg
import psutil
import pytest

from administration.checking.inspection import inspect
from domain.units import BatchId
from tests.acceptance.host import Host
from tests.e2e.server import Server
from tests.faults.cluster import Cluster, cluster
from tests.faults.crowd import (
    QUICK,
    assert_all_is_settled,
    assert_every_acknowledged_report_is_kept,
    assert_nothing_lost_or_doubled,
    crowd,
)
from tests.faults.waiting import CLOCK, until, within
from tests.ports import free_port

MINUTE_S = 60.0
HOLDERS = """
    SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 1297437780 AND granted
        AND objid::bigint = hashtext($1)::bigint & 4294967295
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def family(made: Cluster, node: int) -> list[psutil.Process]:
    """A node's supervisor and its processes."""
    process = made.nodes[node]._process
    assert process is not None
    supervisor = psutil.Process(process.pid)
    return [supervisor, *supervisor.children(recursive=True)]


def background_of(made: Cluster, node: int) -> psutil.Process:
    """Return the background process. Raises ValueError while it is being restarted."""
    found = []
    for one in family(made, node):
        with suppress(psutil.Error):
            if "background" in one.cmdline():
                found.append(one)
    [background] = found
    return background


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[None]:
    """Freeze the processes; wake them when the context ends."""
    for one in processes:
        one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            with suppress(psutil.Error):
                one.send_signal(signal.SIGCONT)


async def fetched(dsn: str, query: str, *arguments: object) -> list[int]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


async def sessions_of(dsn: str, duty: str = "sweeper") -> list[int]:
    """Return the server processes of the sessions with the task's lock: one, or none, if the task is not shared."""
    return await fetched(dsn, HOLDERS, duty)


async def second_node(made: Cluster) -> None:
    """Start another node once the first one has the sweeper's lock; both validate."""

    async def held() -> bool:
        return bool(await sessions_of(made.dsn))

    await until(held, 30, "the first node sweeps")
    node = Server(made.node_folder("second"), port=free_port())
    made.nodes.append(node)
    node.start()
    await made.evenly_held(2)

    async def shared() -> bool:
        return len(await sessions_of(made.dsn, "validator")) == 2

    await until(shared, 30, "both nodes validate")


@pytest.mark.faults
@pytest.mark.parametrize("what", ["background process", "node"])
async def test_frozen_process_loses_its_duties(tmp_path: Path, keys_dir: Path, dsn: str, what: str) -> None:
    """It is frozen for 60 s, under load, at any point, and does no damage when it wakes."""
    async with cluster(tmp_path, keys_dir, dsn, nodes=1) as made:
        await second_node(made)
        await made.server.add_app()
        await made.server.submit(jobs={"count": 50_000, **QUICK})
        first = [background_of(made, 0)] if what == "background process" else family(made, 0)
        async with crowd(made.server, [made.nodes[1].url], 4) as clients:
            await clients.served(50)
            with frozen(first):
                began_s, [session] = CLOCK.monotonic(), await sessions_of(made.dsn)

                async def taken_over() -> bool:
                    return await sessions_of(made.dsn) not in ([], [session])

                await within(taken_over, MINUTE_S, "another process runs the task")
                [marked_until] = await fetched(made.dsn, "SELECT coalesce(max(serial), 0) FROM job_todo")

                async def goes_on() -> bool:
                    """Whether the jobs of both shares are settled."""
                    return await fetched(made.dsn, "SELECT 1 FROM job_todo WHERE serial <= $1", marked_until) == []

                await within(goes_on, began_s + MINUTE_S - CLOCK.monotonic(), "all reported jobs are validated")
                assert session not in await sessions_of(made.dsn, "validator")
                await CLOCK.sleep(max(0.0, began_s + MINUTE_S - CLOCK.monotonic()))  # frozen for a whole minute
            await clients.served(50)
            if what == "background process":
                assert not first[0].is_running()
                assert "process hangs, killing it" in made.nodes[0].log()
            await until(lambda: wakes(made, 0), 60, "the first node has a working background process")
            await clients.served(50)

        await assert_nothing_lost_or_doubled(clients.told, dsn)
        await assert_every_acknowledged_report_is_kept(clients.acknowledged, dsn)
        await assert_all_is_settled(made.server.store)
        async with made.server.store.checking.session() as looked_at:
            found = await inspect(looked_at, None, limit=20, contents=False, progress=lambda *_: None)
        assert not found.found, found.text()


def wakes(made: Cluster, node: int) -> bool:
    """Return whether its background process runs: a new one, or one that noticed the loss of its locks."""
    log = made.nodes[node].log()
    noticed = "locks of periodic tasks lost" in log or "periodic task failed" in log
    return noticed or log.count("periodic tasks started") > 1


async def outputs_that_hang(made: Cluster) -> tuple[BatchId, list[Host], list[Path]]:
    """A batch of one job, its hosts with unreported results, and its outputs, whose reads never end."""
    await made.server.add_app()
    compared = {"quorum": 2, "validator": {"kind": "tolerance", "tolerance": 0.1}, "count": 1}
    batch_id = await made.server.submit(jobs=compared)
    hosts = [await made.server.add_host(f"volunteer{number}") for number in range(2)]
    for host in hosts:

        async def has_work(host: Host = host) -> bool:
            return bool(host.held) or bool(await host.ask())

        await until(has_work, 30, "a job")
        [task] = host.held.values()
        await host.compute(task, b"3.14")
    paths = [path for path in made.project.upload_dir.rglob("*") if path.is_file()]
    for path in paths:
        path.unlink()
        os.mkfifo(path)
    return batch_id, hosts, paths


def comparing(background: psutil.Process) -> list[psutil.Process]:
    """Return its processes that compare outputs."""
    return [one for one in background.children() if "jobs.comparing_process" in one.cmdline()]


@pytest.mark.faults
async def test_comparison_ends_with_its_process(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    """The background process is killed in the middle of a comparison; its child ends too."""
    async with cluster(tmp_path, keys_dir, dsn, nodes=1) as made:
        _, hosts, paths = await outputs_that_hang(made)
        background = background_of(made, 0)
        for host in hosts:
            await host.call()
        await until(lambda: bool(comparing(background)), 30, "a comparison runs")
        [child] = comparing(background)
        await until(lambda: child.status() == psutil.STATUS_SLEEPING, 10, "it waits for a file")

        background.kill()

        await within(lambda: not child.is_running(), 10, "the process that compares is gone")
        for path in paths:
            path.unlink()
            path.write_bytes(b"3.14")


@pytest.mark.faults
async def test_hung_read_of_an_output_delays_no_other_job(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    """Outputs are pipes without a writer: reading one never ends, as on a file server that does not answer.

    No host is blamed, and once the files can be read the job is settled.
    """
    quick = {"validation.max_read_s": 1.0}  # a silent child is killed after 9 s, not after 125 s
    async with cluster(tmp_path, keys_dir, dsn, nodes=1, settings=quick) as made:
        batch_id, hosts, paths = await outputs_that_hang(made)
        before = background_of(made, 0)
        for host in hosts:
            await host.call()

        other_id = await made.server.submit(jobs={"count": 1})

        async def has_more() -> bool:
            return bool(hosts[0].held) or bool(await hosts[0].ask())

        await until(has_more, 30, "a job of the other batch")
        [task] = hosts[0].held.values()
        await hosts[0].work(task, b"3.14")

        async def other_complete() -> bool:
            return str((await made.server.store.views.batch(other_id)).state) == "complete"

        await within(other_complete, 20, "the other batch is complete while a read hangs")
        await within(
            lambda: "job skipped after an error" in made.nodes[0].log(), MINUTE_S, "the comparison is given up"
        )
        assert before.is_running()
        for path in paths:
            path.unlink()
            path.write_bytes(b"3.14")

        async def complete() -> bool:
            return str((await made.server.store.views.batch(batch_id)).state) == "complete"

        await until(complete, 2 * MINUTE_S, "the batch is complete")
        batch = await made.server.batch(batch_id)
        assert (batch["jobs_validated"], batch["retries"]) == (1, 0)
