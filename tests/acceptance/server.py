"""The whole server in this process: real HTTP, a real PostgreSQL, and background steps on the test's command."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from administration.accounts import AccountKeys
from administration.project import Project
from domain.errors import UnavailableError
from domain.units import BatchId, JobId
from domain.views import InstanceRow, JobRow
from runtime.compose import BackgroundParts, WorkerParts, build_background, build_worker
from runtime.metrics.metrics_store import OwnBoard
from runtime.periodic_tasks import STAND_BY_S
from runtime.project import install
from runtime.worker import runner_of
from store.postgres import PostgresStore, open_store
from tests.acceptance.clocks import ForwardClock
from tests.acceptance.host import LINUX, Host
from tests.pg import database
from tests.ports import free_port
from transfer.keys import load_keys, load_signing_key
from wire.signing import sign_bytes

PROGRAM = b"#!/bin/sh\necho done > out\ntouch boinc_finish_called\n"


@dataclass(slots=True)
class LiveWorker:
    """A request worker on its own port. Leaving `stack` stops it."""

    parts: WorkerParts
    url: str
    stack: AsyncExitStack


@dataclass(slots=True)
class LiveServer:
    """One project with its workers and periodic tasks.

    `url` is the first worker's address. `store` is the test's own connection to the database.
    """

    project: Project
    url: str
    clock: ForwardClock
    store: PostgresStore
    http: aiohttp.ClientSession
    workers: list[LiveWorker] = field(default_factory=list)
    background: BackgroundParts | None = None
    board: OwnBoard = field(default_factory=OwnBoard)

    # ------------------------------------------------------------------ steps in the background

    async def feed(self) -> None:
        """Let every worker read the catalogue, take its share of the work and fill its array."""
        for worker in self.workers:
            await worker.parts.shards.run_once()
        for worker in self.workers:
            await worker.parts.shards.run_once()
            await worker.parts.catalogue.refresh_once()
            await worker.parts.feeder.refill_once()

    async def forward(self, by_s: float) -> None:
        """Advance the clock, and let the workers renew their leases."""
        self.clock.forward(by_s)
        await self.feed()

    async def measure(self) -> None:
        """Let every process publish its metrics."""
        assert self.background is not None
        await self.background.heartbeat.write_once()
        await self.background.cluster.ask_once()
        self.background.reporter.report_once()
        for worker in self.workers:
            await worker.parts.watch.read_once()
            worker.parts.reporter.report_once()

    async def validate(self) -> None:
        await self._do("validator")

    async def sweep(self) -> None:
        await self._do("sweeper")

    async def history(self) -> None:
        """Run one step of moving ended batches to the history."""
        await self._do("history")

    async def _do(self, duty_name: str) -> None:
        assert self.background is not None
        await self.background.catalogue.refresh_once()
        [duty] = [one for one in self.background.duties if one.name == duty_name]
        if await duty.step() == STAND_BY_S:
            raise UnavailableError(f"{duty_name} did not run")

    # ------------------------------------------------------------------ what a submitter and an operator do

    async def api(
        self, method: str, path: str, *, token: str | None = None, **arguments: Any
    ) -> tuple[int, Mapping[str, Any]]:
        """Call the API; return status and JSON."""
        keys = AccountKeys(load_keys(self.project.keys_dir).account_secret)
        headers = {"Authorization": f"Bearer {token if token is not None else keys.api_token()}"}
        async with self.http.request(method, f"{self.url}api/v1{path}", headers=headers, **arguments) as response:
            return response.status, await response.json(content_type=None)

    async def create(self, method: str, path: str, **arguments: Any) -> Mapping[str, Any]:
        """Call the API; the call must succeed."""
        status, answer = await self.api(method, path, **arguments)
        assert status in (200, 201), answer
        return answer

    async def add_app(self, name: str = "pi", *, versions: int = 1, **more: object) -> None:
        await self.create("POST", "/apps", json={"name": name, **more})
        if versions:
            await self.add_version(name)

    async def add_version(self, app: str = "pi", *, plan_class: str = "", platform: str = LINUX) -> None:
        signature = sign_bytes(load_signing_key(self.project.keys_dir), PROGRAM)
        query = {"platform": platform, "version": "100", "file": "main.sh", "plan_class": plan_class}
        query |= {"signature": signature}
        await self.create("POST", f"/apps/{app}/versions", params=query, data=PROGRAM)

    async def add_host(self, name: str = "ada", **description: Any) -> Host:
        """Return a new volunteer's host, which has not called yet."""
        answer = await self.create("POST", "/volunteers", json={"email": f"{name}@example.org"})
        return Host(self.http, f"{self.url}scheduler", answer["authenticator"], name, description)

    async def submit(self, *, jobs: Mapping[str, object] | None = None, **batch: object) -> BatchId:
        """Submit a batch over the API and fill the arrays."""
        answer = await self.create("POST", "/batches", json=a_batch(jobs=jobs, **batch))
        await self.feed()
        return BatchId(answer["batch_id"])

    async def batch(self, batch_id: BatchId) -> Mapping[str, Any]:
        return await self.create("GET", f"/batches/{batch_id}")

    async def jobs(self, batch_id: BatchId) -> list[JobRow]:
        """Every job of a batch with its instances."""
        return [await self.store.views.job(job.job_id) for job in await self.store.views.jobs(batch_id, limit=10_000)]

    async def instances(self, batch_id: BatchId) -> list[InstanceRow]:
        """Every instance of a batch, by job and id."""
        return [instance for job in await self.jobs(batch_id) for instance in job.instances]

    async def job_of(self, batch_id: BatchId) -> JobRow:
        """The only job of a batch."""
        [job] = await self.store.views.jobs(batch_id, limit=2)
        return await self.store.views.job(JobId(job.job_id))

    # ------------------------------------------------------------------ starting and stopping

    async def start_worker(self, port: int, project: Project | None = None) -> LiveWorker:
        """Start a worker of this project, or of another node's project on the same database."""
        async with AsyncExitStack() as stack:
            name = f"worker {len(self.workers)}"
            built = build_worker(project or self.project, self.clock, board=self.board, name=name)
            parts = await stack.enter_async_context(built)
            runner = runner_of(parts, idle_timeout_s=75.0, shutdown_s=1.0)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
            worker = LiveWorker(parts, f"http://127.0.0.1:{port}/", stack.pop_all())
        self.workers.append(worker)
        return worker

    async def stop_worker(self, worker: LiveWorker) -> None:
        self.workers.remove(worker)
        await worker.stack.aclose()

    async def restart(self) -> None:
        """Stop the only worker and start it again on the same port."""
        [worker] = self.workers
        await self.stop_worker(worker)
        await self.start_worker(int(worker.url.rstrip("/").rpartition(":")[2]))


def a_batch(*, jobs: Mapping[str, object] | None = None, **batch: object) -> dict[str, object]:
    """Return a batch: by default one throughput job of the app pi with one output."""
    asked = {
        "count": 1,
        "command_line": "--part {i}",
        "fpops_est": 1e12,
        "memory_bytes": 1e8,
        "disk_bytes": 1e8,
        "delay_bound_s": 86400,
        "outputs": [{"name": "out", "max_bytes": 100_000}],
        **(jobs or {}),
    }
    return {"app": "pi", "qos": "throughput", "jobs": asked, **batch}


@asynccontextmanager
async def live_server(
    folder: Path, keys_dir: Path, *, path: str = "", settings: Mapping[str, object] | None = None
) -> AsyncIterator[LiveServer]:
    """A project in `folder` with one worker and its periodic tasks, on a new database.

    `path` is the path of the master URL.
    """
    clock = ForwardClock()
    port = free_port()
    url = f"http://127.0.0.1:{port}/{path}"
    shutil.copytree(keys_dir, folder / "project" / "keys")
    async with AsyncExitStack() as stack:
        dsn = await stack.enter_async_context(database())
        changes = {"project.url": url, **(settings or {})}
        project = await install(folder / "project", dsn, changes, who="test", clock=clock)
        store = await open_store(dsn, clock=clock, min_size=1, max_size=2)
        stack.push_async_callback(store.close)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        server = LiveServer(project, url, clock, store, http)
        server.background = await stack.enter_async_context(build_background(project, clock, board=server.board))
        stack.push_async_callback(_stop_workers, server)
        await server.start_worker(port)
        yield server


async def _stop_workers(server: LiveServer) -> None:
    for worker in list(server.workers):
        await server.stop_worker(worker)
