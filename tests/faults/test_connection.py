"""A node loses its database, or the database stops answering: it sends no jobs, refuses quickly, and recovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from domain.errors import UnavailableError
from runtime.worker import run_until
from store.locks import DEAD_S, SILENCE_S, PostgresShards
from store.pool import CLOSE_S, REQUEST_TIMEOUT_S, Database, connect
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer, LiveWorker, live_server
from tests.faults.crowd import GENEROUS, POLITE, QUICK, assert_nothing_lost_or_doubled, crowd
from tests.faults.proxy import Proxy, proxied
from tests.faults.waiting import CLOCK, until, within
from tests.ports import free_port
from wire.client import encode_request

AT_ONCE_S = 5.0  # on a busy machine
MARGIN_S = 3.0  # the machine may be busy with other tests


@asynccontextmanager
async def worker_behind(server: LiveServer, proxy: Proxy) -> AsyncIterator[LiveWorker]:
    """A second worker, which reaches the database through the proxy; all of its loops run."""
    direct = server.project
    server.project = replace(direct, database_url=proxy.dsn)
    try:
        worker = await server.start_worker(free_port())
    finally:
        server.project = direct
    stop = asyncio.Event()
    loops = asyncio.create_task(run_until(stop, worker.parts.tasks))
    try:
        yield worker
    finally:
        proxy.cut()  # so that closing a frozen connection takes no time
        stop.set()
        await loops
        server.workers.remove(worker)
        with suppress(UnavailableError):
            await worker.stack.aclose()


@asynccontextmanager
async def two_workers(folder: Path, keys_dir: Path) -> AsyncIterator[tuple[LiveServer, LiveWorker, Proxy]]:
    """One worker beside the database, the other behind a proxy; each has half of the shards."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(live_server(folder, keys_dir, settings=GENEROUS))
        near = server.workers[0]
        stop = asyncio.Event()
        loops = asyncio.create_task(run_until(stop, near.parts.tasks))
        stack.push_async_callback(_stopped, stop, loops)
        assert server.project.database_url is not None
        proxy = await stack.enter_async_context(proxied(server.project.database_url))
        far = await stack.enter_async_context(worker_behind(server, proxy))
        await until(lambda: halves(near, far), 20, "both have half of the shards")
        await server.add_app()
        await server.create("POST", "/batches", json=batch(5_000))
        yield server, far, proxy


async def _stopped(stop: asyncio.Event, loops: asyncio.Task[None]) -> None:
    stop.set()
    await loops


def halves(*workers: LiveWorker) -> bool:
    return [len(worker.parts.shards.owned()) for worker in workers] == [32, 32]


def batch(count: int) -> dict[str, object]:
    jobs = {"count": count, "command_line": "{i}", "memory_bytes": 1e8, "disk_bytes": 1e8, "delay_bound_s": 86400}
    return {"app": "pi", "qos": "throughput", "jobs": jobs | QUICK}


async def refused(server: LiveServer, worker: LiveWorker, requester: Host, most_s: float) -> float:
    """Return the seconds until that worker asks clients to retry later."""
    began_s = CLOCK.monotonic()
    async with server.http.post(
        f"{worker.url}scheduler", data=encode_request(requester.request()), timeout=aiohttp.ClientTimeout(60)
    ) as response:
        answer = (response.status, await response.text())
    took_s = CLOCK.monotonic() - began_s
    assert answer == (503, POLITE)
    assert took_s < most_s, f"told after {took_s:.1f} s"
    return took_s


async def test_cut_off_node_stops_and_clients_continue(tmp_path: Path, keys_dir: Path) -> None:
    async with two_workers(tmp_path, keys_dir) as (server, far, proxy):
        near, requester = server.workers[0], await server.add_host("requester")
        async with crowd(server, [near.url, far.url], 4) as clients:
            await clients.served(20)
            for _ in range(3):
                proxy.cut()
                await within(lambda: far.parts.shards.owned() == frozenset(), AT_ONCE_S, "it has no shards")
                await refused(server, far, requester, AT_ONCE_S)
                await within(lambda: len(near.parts.shards.owned()) == 64, 10, "the other one has all shards")
                await clients.served(20)

                await proxy.listen()
                await until(lambda: halves(near, far), 20, "both have half of the shards again")
                await clients.served(20)
        assert set(clients.refused) <= {(503, POLITE)}
        assert server.project.database_url is not None
        await assert_nothing_lost_or_doubled(clients.told, server.project.database_url)


async def test_a_node_whose_database_falls_silent_says_so_in_time(tmp_path: Path, keys_dir: Path) -> None:
    async with two_workers(tmp_path, keys_dir) as (server, far, proxy):
        near, requester = server.workers[0], await server.add_host("requester")
        async with crowd(server, [near.url, far.url], 4) as clients:
            await clients.served(20)
            proxy.freeze()
            doubt = asyncio.create_task(
                within(far.parts.shards.in_doubt, SILENCE_S + MARGIN_S, "it knows that its locks may be lost")
            )
            waiting = [asyncio.create_task(refused(server, far, requester, SILENCE_S + MARGIN_S)) for _ in range(5)]
            await asyncio.gather(doubt, *waiting)
            await refused(server, far, requester, AT_ONCE_S)  # from here on without querying the database
            await clients.served(20)

            proxy.thaw()
            await until(lambda: halves(near, far), 30, "both have half of the shards again")
            await clients.served(20)
        assert max(client.slowest_s for client in clients.clients) < SILENCE_S + MARGIN_S
        assert set(clients.refused) <= {(503, POLITE)}
        assert server.project.database_url is not None
        await assert_nothing_lost_or_doubled(clients.told, server.project.database_url)


@pytest.mark.faults
async def test_the_shards_of_a_silent_node_go_to_the_others(tmp_path: Path, keys_dir: Path) -> None:
    async with two_workers(tmp_path, keys_dir) as (server, far, proxy):
        near = server.workers[0]
        proxy.freeze()

        taken_s = await within(
            lambda: len(near.parts.shards.owned()) == 64, DEAD_S + 10, "the other one has all shards"
        )

        assert taken_s > SILENCE_S and far.parts.shards.owned() == frozenset()
        proxy.thaw()
        await until(lambda: halves(near, far), 60, "both have half of the shards again")


async def test_connections_to_a_silent_database_can_be_closed(dsn: str) -> None:
    async with proxied(dsn) as proxy:
        database, shards = await Database.open(proxy.dsn, min_size=1, max_size=2), PostgresShards(proxy.dsn, CLOCK)
        await shards.run_once()
        proxy.freeze()
        began_s = CLOCK.monotonic()

        await asyncio.gather(database.close(), shards.close())

        assert CLOCK.monotonic() - began_s < CLOSE_S + MARGIN_S


@pytest.mark.faults
async def test_stopped_client_blocks_others_only_for_seconds(dsn: str) -> None:
    stopped, other = await connect(dsn), await asyncpg.connect(dsn)
    try:
        await stopped.execute("BEGIN")
        await stopped.execute("LOCK TABLE host IN EXCLUSIVE MODE")  # the session stays idle in its transaction
        began_s = CLOCK.monotonic()

        await _locked(other)

        assert REQUEST_TIMEOUT_S - 1 < CLOCK.monotonic() - began_s < REQUEST_TIMEOUT_S + MARGIN_S
    finally:
        stopped.terminate()
        await other.close()


async def _locked(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    async with connection.transaction():
        await connection.execute("LOCK TABLE host IN EXCLUSIVE MODE", timeout=60)
