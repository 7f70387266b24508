"""A node dies while it takes a file: another one goes on with it, and every byte is right."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp

from tests.faults.cluster import cluster
from tests.faults.waiting import until
from wire.messages import UploadHeader
from wire.uploads import encode_upload_header

FILE_BYTES = 1_000_000
SENT_BYTES = 800_000  # before the node dies
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


def kept(folder: Path) -> int:
    """Bytes of the only part."""
    return sum(path.stat().st_size for path in folder.rglob("*.part"))
