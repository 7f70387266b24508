"""A node dies, or its disk is slow, during an upload: the upload continues, and every byte is right."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from demo.load.jobs import VolunteerTask
from domain.dispatch import ReportedFile
from domain.units import BatchId, Seconds
from tests.acceptance.host import Host
from tests.chaos.sync_faults import DEADLY_S, SyncFaults, can_be_built
from tests.faults.cluster import Cluster, cluster
from tests.faults.waiting import until
from wire.messages import STATE_UPLOADED, UploadHeader
from wire.uploads import encode_upload_header

FILE_BYTES = 1_000_000
LONG_S = 60.0  # a sync takes this long unless released
SENT_BYTES = 800_000  # sent before the node dies
KEPT_BYTES = 400_000  # of them on disk by then, at least


async def test_an_upload_whose_node_died_goes_on_at_another_node(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    content = random.Random(1).randbytes(FILE_BYTES)
    async with cluster(tmp_path, keys_dir, dsn, nodes=2) as made:
        await made.server.add_app()
        batch_id = await made.server.submit(jobs={"outputs": [{"name": "out", "max_bytes": FILE_BYTES}]})
        host = await made.server.add_host()

        async def was_given() -> bool:
            return bool(host.held) or bool(await host.ask())

        await until(was_given, 20, "a job for the host")
        [task] = host.held.values()
        [name] = task.tokens
        header = UploadHeader(name, task.tokens[name], FILE_BYTES, FILE_BYTES, hashlib.md5(content).hexdigest(), 0)
        never = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield encode_upload_header(header) + content[:SENT_BYTES]
            await never.wait()

        uploading = asyncio.create_task(made.server.http.post(f"{made.nodes[0].url}upload", data=body()))
        await until(lambda: kept(made.project.upload_dir) >= KEPT_BYTES, 20, "some of the file is on disk")
        made.nodes[0].kill()
        [broken] = await asyncio.gather(uploading, return_exceptions=True)
        assert isinstance(broken, aiohttp.ClientError)

        task = replace(task, upload_url=f"{made.nodes[1].url}upload")
        size = (await host.size(task)).file_size
        assert size is not None and KEPT_BYTES <= size <= SENT_BYTES
        assert (await host.upload(task, content, offset=size)).status == 0

        [whole] = [path for path in made.project.upload_dir.rglob("*") if path.is_file()]
        assert whole.read_bytes() == content
        host.scheduler_url = f"{made.nodes[1].url}scheduler"
        await host.work(task, content)

        async def complete() -> bool:
            return str((await made.server.store.views.batch(batch_id)).state) == "complete"

        await until(complete, 30, "the batch is complete")


@pytest.mark.skipif(not can_be_built(), reason="needs a C compiler")
async def test_a_process_that_dies_in_sync_acknowledged_nothing(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    content = random.Random(2).randbytes(FILE_BYTES)
    fault = SyncFaults(tmp_path)
    async with cluster(tmp_path, keys_dir, dsn, nodes=1, environment=fault.environment) as made:
        batch_id, host, task = await a_given_task(made)
        fault.set(DEADLY_S)
        with pytest.raises(aiohttp.ClientError):
            await host.upload(task, content)
        fault.set(0.0)
        await until(made.nodes[0].answers, 30, "the worker is back")

        size = (await host.size(task)).file_size
        assert size == FILE_BYTES - 1
        assert (await host.upload(task, content, offset=size)).status == 0
        assert (await host.size(task)).file_size == FILE_BYTES
        await reported_and_complete(made, batch_id, host, task, content)


@pytest.mark.skipif(not can_be_built(), reason="needs a C compiler")
async def test_a_slow_sync_is_not_acknowledged_elsewhere(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    content = random.Random(3).randbytes(FILE_BYTES)
    fault = SyncFaults(tmp_path)
    async with cluster(tmp_path, keys_dir, dsn, nodes=2, environment=fault.environment) as made:
        batch_id, host, task = await a_given_task(made)
        fault.set(LONG_S)
        first = asyncio.create_task(host.upload(task, content))

        async def arrived() -> bool:
            return kept(made.project.upload_dir) == FILE_BYTES

        await until(arrived, 20, "all bytes of the first upload are here")

        sizes = [(await host.size(replace(task, upload_url=f"{node.url}upload"))).file_size for node in made.nodes]
        assert sizes == [FILE_BYTES - 1] * 2
        again = asyncio.create_task(host.upload(task, content, offset=FILE_BYTES - 1))
        assert not first.done()
        fault.release()
        assert (await first).status == 0
        assert (await again).status in (0, 1)  # done, or asked to retry because the first one won
        assert (await host.size(task)).file_size == FILE_BYTES
        await reported_and_complete(made, batch_id, host, task, content)


async def a_given_task(made: Cluster) -> tuple[int, Host, VolunteerTask]:
    """A batch of one job, and the host that has it."""
    await made.server.add_app()
    batch_id = await made.server.submit(jobs={"outputs": [{"name": "out", "max_bytes": FILE_BYTES}]})
    host = await made.server.add_host()

    async def was_given() -> bool:
        return bool(host.held) or bool(await host.ask())

    await until(was_given, 20, "a job for the host")
    [task] = host.held.values()
    return batch_id, host, task


async def reported_and_complete(made: Cluster, batch_id: int, host: Host, task: VolunteerTask, content: bytes) -> None:
    """The host reports the output it uploaded, and the batch is complete with it."""
    [name] = task.tokens
    file = ReportedFile(name, len(content), hashlib.md5(content).hexdigest())
    host.end(task, STATE_UPLOADED, files=(file,), elapsed_s=Seconds(900.0), cpu_s=Seconds(900.0))
    await host.call()

    async def complete() -> bool:
        return str((await made.server.store.views.batch(BatchId(batch_id))).state) == "complete"

    await until(complete, 30, "the batch is complete")
    [whole] = [path for path in made.project.upload_dir.rglob("*") if path.is_file()]
    assert whole.read_bytes() == content


def kept(folder: Path) -> int:
    """Return the bytes of the only part."""
    return sum(path.stat().st_size for path in folder.rglob("*.part"))
