"""One client takes all the connections it may have of a node: other clients are served."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.acceptance.host import Host
from tests.faults.cluster import cluster
from tests.faults.crowd import QUICK
from tests.faults.waiting import CLOCK, until

MOST = 200
HELD = 3 * MOST
BEGUN = b"POST /scheduler HTTP/1.1\r\nHost: a\r\nContent-"  # a request without an end of its headers
AT_ONCE_S = 5.0  # on a busy machine


async def test_idle_connections_do_not_block_requests(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    async with AsyncExitStack() as stack:
        bound = {"server.connections": MOST}
        made = await stack.enter_async_context(cluster(tmp_path, keys_dir, dsn, nodes=1, settings=bound))
        await made.server.add_app()
        await made.server.submit(jobs={"count": 5, **QUICK})
        hosts = [await made.server.add_host(f"volunteer{number}") for number in range(3)]
        where = urlsplit(made.urls[0])
        held = await asyncio.gather(*(asyncio.open_connection(where.hostname, where.port) for _ in range(HELD)))
        for _, writer in held:
            stack.callback(writer.close)
        for _, writer in held[::2]:
            writer.write(BEGUN)

        for host in hosts:

            async def has_a_job(host: Host = host) -> bool:
                began_s = CLOCK.monotonic()
                tasks = await host.ask()
                assert CLOCK.monotonic() - began_s < AT_ONCE_S
                return len(tasks) == 1

            await until(has_a_job, 10.0, "a job")

        ends = [asyncio.create_task(_closed(reader)) for reader, _ in held]
        await until(lambda: sum(end.done() for end in ends) >= HELD - MOST, 30.0, "the idle ones are closed")
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _closed(reader: asyncio.StreamReader) -> None:
    """Return when the server has closed the connection."""
    with suppress(ConnectionError):
        await reader.read()
