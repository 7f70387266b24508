"""A complete project: a node of two workers, a database, links, disks, and attached volunteers."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from administration.checking.inspection import Inspection, inspect
from administration.project import Project
from runtime.project import install
from store.postgres import open_store
from tests.acceptance.clocks import ForwardClock
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.chaos.clock import set_ahead
from tests.chaos.database import EmbeddedServer
from tests.chaos.disk import Disk
from tests.chaos.link import Link
from tests.chaos.node import Node
from tests.chaos.sync_faults import SyncFaults
from tests.faults.waiting import CLOCK
from tests.ports import free_port

UPLOADS_BYTES = 256_000_000
WORKERS = 2
SETTINGS: dict[str, object] = {
    "scheduler.daily_quota": 1_000_000,
    "scheduler.daily_quota_start": 1_000_000,
    "scheduler.shared_quota_start": 100_000_000,  # used, but never exhausted
    "server.host_requests_per_s": 0,  # simulated hosts send requests as fast as they are answered
    "server.address_requests_per_s": 0,
    "scheduler.in_progress_per_cpu": 100,
    "scheduler.request_delay_s": 1,
    "scheduler.no_work_delay_s": 1,
    "feeder.interval_s": 0.3,
    "feeder.slots": 400,
    "lifecycle.validate_interval_s": 0.2,
    "lifecycle.sweep_interval_s": 1,
}
JOBS: dict[str, object] = {"fpops_est": 1e9, "outputs": [{"name": "out", "max_bytes": 100_000}]}


@dataclass(slots=True)
class Deployment:
    """Everything that can be broken."""

    folder: Path
    project: Project
    primary: EmbeddedServer
    spare: EmbeddedServer
    uploads: Disk
    clients: Link
    database: Link
    node: Node
    clock_file: Path
    syncs: SyncFaults
    hosts: list[Host] = field(default_factory=list)
    one_at_the_database: asyncio.Lock = field(default_factory=asyncio.Lock)  # serializes faults of the server
    one_at_the_node: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def dsn(self) -> str:
        """Return the DSN of the primary, without the link."""
        return self.primary.dsn("muster")

    def set_clock(self, ahead_s: float) -> None:
        set_ahead(self.clock_file, ahead_s)

    async def add_hosts(self, count: int) -> None:
        """Add volunteers with one host each. The node must be running."""
        async with self._server() as server:
            for number in range(len(self.hosts), count):
                host = await server.add_host(f"volunteer{number}")
                self.hosts.append(host)

    async def add_app(self) -> None:
        async with self._server() as server:
            await server.add_app()

    async def submit(self, seed: int) -> None:
        """Submit a few batches, some of which volunteers can complete."""
        draw = random.Random(f"{seed} batches")
        async with self._server() as server:
            for quorum, most in ((1, 600), (2, 300)):
                jobs = {**JOBS, "count": draw.randint(most // 3, most), "quorum": quorum}
                await server.submit(jobs=jobs)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[LiveServer]:
        """Return a client for submitters."""
        clock = ForwardClock()
        store = await open_store(self.dsn, clock=clock, min_size=1, max_size=2)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:
                yield LiveServer(self.project, f"http://127.0.0.1:{self.node.port}/", clock, store, http)
        finally:
            await store.close()

    async def inspected(self) -> Inspection:
        """Return the output of `muster check --contents`."""
        store = await open_store(self.dsn, min_size=1, max_size=2)
        try:
            async with store.checking.session() as session:
                return await inspect(
                    session, self.project.upload_dir, limit=20, contents=True, progress=lambda *_: None
                )
        finally:
            await store.close()


@asynccontextmanager
async def deployed(keys_dir: Path, volunteers: int) -> AsyncIterator[Deployment]:
    """Run a new deployment; remove all of it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="muster-chaos-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    folder.chmod(0o755)
    primary = EmbeddedServer("a", folder)
    spare = EmbeddedServer("b", folder)
    uploads = Disk(folder / "uploads", UPLOADS_BYTES)
    clock_file = folder / "clock"
    set_ahead(clock_file, 0.0)
    made: Deployment | None = None
    try:
        primary.initialise()
        primary.start()
        primary.create_database("muster")
        port = free_port()
        database, clients = Link(primary.dsn("muster")), Link(f"postgresql://127.0.0.1:{port}/")
        await database.listen()
        await clients.listen()
        shutil.copytree(keys_dir, folder / "project" / "keys")
        url = f"http://127.0.0.1:{clients.port}/"
        project = await install(
            folder / "project", primary.dsn("muster"), {"project.url": url, **SETTINGS}, who="test", clock=CLOCK
        )
        project.upload_dir.rmdir()
        project.upload_dir.symlink_to(uploads.folder)
        syncs = SyncFaults(folder)
        log_file = folder / "node.log"
        node = Node(project.data_dir, database.dsn, port, WORKERS, clock_file, log_file, syncs.environment)
        made = Deployment(folder, project, primary, spare, uploads, clients, database, node, clock_file, syncs)
        await node.start()
        await made.add_app()
        await made.add_hosts(volunteers)
        for host in made.hosts:
            host.scheduler_url = f"{url}scheduler"
        await node.stop()
        yield made
    finally:
        if made is not None:
            made.node.kill()
            await made.clients.end()
            await made.database.end()
        for server in (primary, spare) if made is None else (made.primary, made.spare):
            with suppress(Exception):
                server.wipe()
        uploads.remove()
        shutil.rmtree(folder, ignore_errors=True)
