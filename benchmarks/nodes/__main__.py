"""Checks that no job is lost, duplicated or late when nodes sharing a database are killed and new nodes join.

`python -m benchmarks.nodes --kills 20 --json`. A project on an embedded database has two nodes of two workers each
(`muster up`, one port per node) under load over HTTP. Repeatedly, all processes of one node are killed simultaneously
by SIGKILL, and later a new node joins in its place. Clients continue with the other node. At the end, every received
reply is compared with the database.
"""

from __future__ import annotations

import argparse
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median

import asyncpg
import numpy as np

from administration.project import Project
from benchmarks.dispatch.__main__ import described
from benchmarks.dispatch.check import check
from benchmarks.dispatch.figures import table
from benchmarks.dispatch.processes import free_port
from benchmarks.dispatch.world import World, install_project
from benchmarks.nodes.figures import is_even, slowest_answers_s
from benchmarks.nodes.processes import Load, Node
from benchmarks.running import BenchmarkError, parser_of, run_and_tell, say
from benchmarks.statements import statements
from domain.clock import Clock
from domain.units import SHARDS
from runtime.project import database_dsn, open_database, release_database
from store.locks import LOCK_CLASS

NODES = 2
REBALANCE_S = 60.0  # maximum time to redistribute the shards
LOOK_S = 0.02  # interval of checking the locks
LEAST_LOAD_S = 1.0  # minimum time between a rebalancing and the next kill
SLOTS = 1000


class Trial:
    """Kills and joins nodes, and measures how long the shards take to move."""

    def __init__(self, nodes: list[Node], load: Load, world: World, look: asyncpg.Connection, clock: Clock) -> None:
        self._nodes = nodes
        self._load = load
        self._world = world
        self._look = look
        self._clock = clock
        self._shards = statements("nodes")["shards"]
        self.killed_s: list[float] = []
        self.taken_over_s: list[float] = []
        self.joined_s: list[float] = []

    async def kill_and_join(self, number: int, *, workers: int, waiting_jobs: int) -> None:
        """Kill one node. When the others hold its shards, restart it and wait until it has its share."""
        node = self._nodes[number % NODES]
        killed_s = time.monotonic()
        await node.kill()
        self.killed_s.append(killed_s)
        self.taken_over_s.append(await self.evenly_held(workers * (NODES - 1), since_s=killed_s))
        await self._world.top_up(waiting_jobs)
        await node.start()
        await self._load.ask(back=node.port)
        self.joined_s.append(await self.evenly_held(workers * NODES, since_s=time.monotonic()))
        await self._clock.sleep(LEAST_LOAD_S)
        taken_s, joined_s = self.taken_over_s[-1], self.joined_s[-1]
        say(f"  kill {number + 1}: shards taken over in {taken_s:.2f} s, shared with the new node in {joined_s:.2f} s")

    async def evenly_held(self, workers: int, *, since_s: float) -> float:
        """Wait until all shards are evenly distributed over this many workers. Return the seconds since `since_s`."""
        while time.monotonic() < since_s + REBALANCE_S:
            held = [row["held"] for row in await self._look.fetch(self._shards, LOCK_CLASS)]
            if is_even(held, workers=workers, shards=SHARDS):
                return time.monotonic() - since_s
            await self._clock.sleep(LOOK_S)
        raise BenchmarkError(f"the shards are not evenly held by {workers} workers after {REBALANCE_S:.0f} s: {held}")


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Run the whole benchmark in an empty directory and return its figures."""
    ports = [free_port() for _ in range(NODES)]
    project = await install_project(folder, url=f"http://127.0.0.1:{ports[0]}/", slots=SLOTS, clock=clock)
    dsn = await database_dsn(project)
    try:
        async with open_database(project, clock) as store, AsyncExitStack() as stack:
            connection = await asyncpg.connect(dsn, statement_cache_size=20)
            stack.push_async_callback(connection.close)
            world = World(store, connection, clock, jobs=1)
            say(f"filling a project with {options.waiting_jobs:,} waiting jobs …")
            await world.fill(project, options.waiting_jobs)
            nodes = [
                Node(project, port=port, workers=options.workers, log_path=folder / f"node-{port}.log", clock=clock)
                for port in ports
            ]
            for node in nodes:
                stack.push_async_callback(node.stop)
                await node.start()
            load = Load()
            stack.push_async_callback(load.close)
            trial = Trial(nodes, load, world, connection, clock)
            await trial.evenly_held(NODES * options.workers, since_s=time.monotonic())
            return await _run(options, trial, load, world, connection, project, ports, folder, clock)
    finally:
        release_database(project)


async def _run(
    options: argparse.Namespace,
    trial: Trial,
    load: Load,
    world: World,
    connection: asyncpg.Connection,
    project: Project,
    ports: list[int],
    folder: Path,
    clock: Clock,
) -> dict[str, object]:
    since, began_s = clock.now(), time.monotonic()
    await load.start(await described(world, project, 1, ports[0], folder), ports, options.connections)
    await clock.sleep(LEAST_LOAD_S)
    for number in range(options.kills):
        await trial.kill_and_join(number, workers=options.workers, waiting_jobs=options.waiting_jobs)
    loaded_s = time.monotonic() - began_s
    told_path, requests_path = folder / "told.npy", folder / "requests.npy"
    counts = await load.ask(stop=str(told_path), requests=str(requests_path))
    say("comparing every reply with the database …")
    checked = asdict(await check(told_path, connection, since=since))
    slowest = slowest_answers_s(np.load(requests_path), trial.killed_s)
    return {
        "kills": options.kills,
        **checked,
        "requests": counts["requests"],
        "requests_per_s": round(counts["requests"] / loaded_s, 1),
        "failed_requests": counts["tries_failed"],
        "no_work_fraction": round(counts["without_work"] / max(1, counts["requests"]), 6),
        "slowest_answer_after_kill_s": max(slowest, default=0.0),
        "slowest_answers_after_kills_s": slowest,
        "shards_rebalanced_s": _median_and_most(trial.taken_over_s),
        "shards_shared_after_join_s": _median_and_most(trial.joined_s),
        "nodes": NODES,
        "workers_per_node": options.workers,
        "connections": options.connections,
        "waiting_jobs": options.waiting_jobs,
    }


def _median_and_most(values: list[float]) -> dict[str, float]:
    return {"median": round(median(values), 3), "max": round(max(values), 3)} if values else {}


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2, help="request workers of each node")
    parser.add_argument("--connections", type=int, default=32, help="clients with requests at the same time")
    parser.add_argument("--waiting-jobs", type=int, default=100_000, help="the backlog, kept filled")
    return parser.parse_args()


def main() -> None:
    run_and_tell(parsed(), measure, table)


if __name__ == "__main__":
    main()
