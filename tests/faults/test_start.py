"""A process starts without a database: it waits, logs that once, and serves when the database is back."""

from __future__ import annotations

import asyncio
import gc
import shutil
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import pytest
from structlog.testing import capture_logs

from administration.project import Project
from domain.clock import SystemClock
from domain.errors import UnavailableError
from runtime.project import install
from runtime.worker import Background, Worker
from store.locks import PostgresShards
from store.pool import Database
from tests.faults.proxy import Proxy, proxied
from tests.faults.waiting import until
from tests.ports import free_port

STARTED_S = 20.0  # on a busy machine
WORKERS = """
    SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 19797 AND objid = 4294967295 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@dataclass
class Starting:
    """A starting process."""

    port: int
    stop: asyncio.Event
    ready: asyncio.Event
    task: asyncio.Task[None]
    logs: Sequence[MutableMapping[str, Any]]

    def logged(self, event: str) -> list[object]:
        return [line.get("why") for line in self.logs if line["event"] == event]

    async def waits(self) -> None:
        await until(lambda: bool(self.logged("waiting for the database")), STARTED_S, "it waits for the database")
        assert not self.task.done()

    async def becomes_ready(self) -> None:
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait({ready, self.task}, timeout=STARTED_S, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self.task.done():
            await self.task
        assert self.ready.is_set()

    async def serves(self) -> bool:
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{self.port}/readyz") as reply,
        ):
            return reply.status == 200


@pytest.fixture
async def project(tmp_path: Path, keys_dir: Path, dsn: str) -> Project:
    shutil.copytree(keys_dir, tmp_path / "project" / "keys")
    url = {"project.url": "http://127.0.0.1/"}
    return await install(tmp_path / "project", dsn, url, who="test", clock=SystemClock())


@asynccontextmanager
async def starting(project: Project, through: str, kind: str = "worker") -> AsyncIterator[Starting]:
    """A worker or background process that reaches its database by the DSN `through`."""
    made, port = Project(project.data_dir, through), free_port()
    process: Worker | Background
    if kind == "worker":
        process = Worker(made, SystemClock(), host="127.0.0.1", ports=[port], number=0)
    else:
        process = Background(made, SystemClock())
    stop, ready = asyncio.Event(), asyncio.Event()
    with capture_logs() as logs:
        task = asyncio.create_task(process.run(stop, ready.set))
        yield Starting(port, stop, ready, task, logs)
        stop.set()
        await asyncio.wait_for(task, STARTED_S)


@pytest.mark.parametrize("kind", ["worker", "background"])
async def test_start_waits_for_refused_database(project: Project, dsn: str, kind: str) -> None:
    async with proxied(dsn) as proxy:
        proxy.cut()
        async with starting(project, proxy.dsn, kind) as process:
            await process.waits()
            await proxy.listen()
            await process.becomes_ready()

            assert len(process.logged("waiting for the database")) == 1
            assert len(process.logged("the database is back")) == 1
            if kind == "worker":
                await until(process.serves, STARTED_S, "it serves")


async def test_start_waits_when_primary_goes_in_take_share(project: Project, dsn: str) -> None:
    """Another worker keeps all shards, so that the database fails while this one waits for its share."""
    async with proxied(dsn) as proxy:
        other = PostgresShards(dsn, SystemClock())
        assert len(await other.run_once()) == 64
        async with starting(project, proxy.dsn) as process:
            await until(lambda: counted(dsn, WORKERS, 2), STARTED_S, "it waits for its share")
            proxy.cut()
            await process.waits()
            assert not process.ready.is_set()
            await until(lambda: counted(dsn, WORKERS, 1), STARTED_S, "its first connection is gone")
            await proxy.listen()
            await other.close()
            await process.becomes_ready()
            await until(process.serves, STARTED_S, "it serves")
            await until(lambda: counted(dsn, WORKERS, 1), STARTED_S, "nothing of its first start is left")


async def test_start_waits_for_server_that_takes_writes(project: Project, dsn: str) -> None:
    """Both servers of the DSN are read-only, as in a fail-over before the standby is promoted."""
    async with proxied(dsn) as one, proxied(dsn) as two:
        both = urlsplit(one.dsn)
        through = f"postgresql://{both.netloc},127.0.0.1:{urlsplit(two.dsn).port}{both.path}"
        through += "?target_session_attrs=read-write"
        connection = await asyncpg.connect(dsn)
        name = urlsplit(dsn).path.lstrip("/")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        async with starting(project, through) as process:
            await process.waits()
            [why] = process.logged("waiting for the database")
            assert "target attribute requirement" in str(why)
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            await process.becomes_ready()
            await until(process.serves, STARTED_S, "it serves")
        await connection.close()


async def test_start_that_waits_can_be_stopped(project: Project, dsn: str) -> None:
    async with proxied(dsn) as proxy:
        proxy.cut()
        async with starting(project, proxy.dsn) as process:
            await process.waits()
            process.stop.set()
            await asyncio.wait_for(process.task, STARTED_S)
            assert not process.ready.is_set()


class RoomForOne(Proxy):
    """Accepts one connection and breaks the others, like a server at its `max_connections`."""

    accepted = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.accepted > 1:
            writer.transport.abort()
            return
        await super()._serve(reader, writer)


async def test_pool_that_fails_to_open_keeps_no_connection(dsn: str) -> None:
    """A process that retries every second must not use up the connections of a small server."""
    proxy = RoomForOne(dsn)
    await proxy.listen()
    gc.disable()
    try:
        with pytest.raises(UnavailableError):
            await Database.open(proxy.dsn, min_size=2, max_size=2)
        assert proxy.accepted == 2
        await until(lambda: counted(dsn, SESSIONS, 0), STARTED_S, "the first connection is closed")
    finally:
        gc.enable()
        proxy.cut()


async def counted(dsn: str, query: str, count: int) -> bool:
    connection = await asyncpg.connect(dsn)
    try:
        return bool(await connection.fetchval(query) == count)
    finally:
        await connection.close()
