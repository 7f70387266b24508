"""Nodes on one database, and a client for submitters."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg

from administration.project import Project, create_project
from domain.units import SHARDS
from runtime.project import install
from store.locks import LOCK_CLASS
from store.postgres import open_store
from tests.acceptance.clocks import ForwardClock
from tests.acceptance.server import LiveServer
from tests.e2e.server import Server
from tests.faults.crowd import GENEROUS
from tests.faults.waiting import until
from tests.ports import free_port

HELD = """
    SELECT count(*) FILTER (WHERE objid <> 4294967295) AS held
    FROM pg_locks
    WHERE locktype = 'advisory' AND classid::bigint = $1 AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    GROUP BY pid
    HAVING count(*) FILTER (WHERE objid = 4294967295) > 0
"""


NO_SETTINGS: Mapping[str, object] = {}
NO_ENVIRONMENT: Mapping[str, str] = {}


@dataclass(slots=True)
class Cluster:
    """Real nodes (`muster up`). `server` has no workers of its own: it uses the nodes."""

    dsn: str
    project: Project
    server: LiveServer
    nodes: list[Server] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    async def evenly_held(self, workers: int, most_s: float = 30.0) -> float:
        """Return the seconds until all shards are held evenly by this many workers."""
        connection = await asyncpg.connect(self.dsn)

        async def even() -> bool:
            held = [row["held"] for row in await connection.fetch(HELD, LOCK_CLASS)]
            return len(held) == workers and sum(held) == SHARDS and max(held) - min(held) <= 1

        try:
            return await until(even, most_s, f"all shards evenly held by {workers} workers")
        finally:
            await connection.close()

    def node_folder(self, name: str) -> Path:
        """Create another data directory of the same project, as on another machine: keys copied, files shared."""
        made = create_project(self.project.data_dir.with_name(name), self.dsn)
        shutil.copytree(self.project.keys_dir, made.keys_dir)
        shutil.rmtree(made.data_dir / "files")
        (made.data_dir / "files").symlink_to(self.project.data_dir / "files")
        return made.data_dir


@asynccontextmanager
async def cluster(
    folder: Path,
    keys_dir: Path,
    dsn: str,
    *,
    nodes: int,
    workers: int = 1,
    settings: Mapping[str, object] = NO_SETTINGS,
    environment: Mapping[str, str] = NO_ENVIRONMENT,
) -> AsyncIterator[Cluster]:
    """A project with this many nodes, each with a data directory of its own; they are killed at the end."""
    ports = [free_port() for _ in range(nodes)]
    shutil.copytree(keys_dir, folder / "node0" / "keys")
    clock = ForwardClock()
    url = f"http://127.0.0.1:{ports[0]}/"
    async with AsyncExitStack() as stack:
        chosen = {"project.url": url, **GENEROUS, **settings}
        project = await install(folder / "node0", dsn, chosen, who="test", clock=clock)
        store = await open_store(dsn, clock=clock, min_size=1, max_size=2)
        stack.push_async_callback(store.close)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)))
        made = Cluster(dsn, project, LiveServer(project, url, clock, store, http))
        stack.callback(_kill, made.nodes)
        for number, port in enumerate(ports):
            data_dir = project.data_dir if number == 0 else made.node_folder(f"node{number}")
            own = free_port() if workers == 1 else None  # as deploy/haproxy expects it
            node = Server(data_dir, port=port, workers=workers, worker_port=own, environment=environment)
            made.nodes.append(node)
            node.start()
        yield made


def _kill(nodes: Sequence[Server]) -> None:
    for node in nodes:
        node.kill()
