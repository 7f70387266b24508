"""Checks that a node's speed and size stay constant over hours.

`python -m benchmarks.soak --minutes 30 --json`. It runs the project of benchmarks.dispatch and `muster up` under steady
load at a fraction of the full rate, which is measured first. Every 30 s it takes a sample: latency, memory of each
process, and sizes and dead rows of the tables. Samples are written to standard error immediately, as lines of JSON. At
the end, every reply is compared with the database, and the tables with freshly rewritten tables.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

import asyncpg

from administration.project import Project
from benchmarks.dispatch.__main__ import described
from benchmarks.dispatch.check import check, troubles
from benchmarks.dispatch.figures import table
from benchmarks.dispatch.processes import Generator, free_port, generator, node
from benchmarks.dispatch.runs import CLIENTS, Runs
from benchmarks.dispatch.world import World, install_project
from benchmarks.running import parser_of, run_and_tell, say
from benchmarks.soak.figures import Sample, bloat, bloat_ratio, summary
from benchmarks.soak.watch import Watch, rewritten_tables, tables
from domain.clock import Clock
from runtime.project import database_dsn, open_database, release_database

WARM_UP_S = 5.0
FULL_S = 15.0  # time to measure the full rate
JOBS = 1  # jobs per request
MOST_STRETCH_FRACTION = 0.25  # of the duration of a short run


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Run the whole benchmark in an empty directory and return its figures."""
    port = free_port()
    project = await install_project(folder, url=f"http://127.0.0.1:{port}/", slots=options.slots, clock=clock)
    dsn = await database_dsn(project)
    try:
        async with open_database(project, clock) as store, AsyncExitStack() as stack:
            connection = await asyncpg.connect(dsn, statement_cache_size=20)
            stack.push_async_callback(connection.close)
            world = World(store, connection, clock, jobs=JOBS)
            say(f"filling a project with {options.waiting_jobs:,} waiting jobs …")
            await world.fill(project, options.waiting_jobs)
            since = clock.now()
            samples, figures = await _load(options, project, world, connection, port, folder, clock)
            last = await tables(connection)
            say("comparing every reply with the database …")
            checked = asdict(await check(folder / "told.npy", connection, since=since))
            say("rewriting the tables …")
            compact = await rewritten_tables(connection)
    finally:
        release_database(project)
    return {
        **summary(samples),
        **figures,
        **checked,
        "bloat_ratio": bloat_ratio(last, compact),
        "bloat": bloat(samples, last, compact),
        "troubles": troubles(folder / "node.log"),
        "samples": [asdict(sample) for sample in samples],
    }


async def _load(
    options: argparse.Namespace,
    project: Project,
    world: World,
    connection: asyncpg.Connection,
    port: int,
    folder: Path,
    clock: Clock,
) -> tuple[list[Sample], dict[str, object]]:
    """Run a node under load. Return its samples and its load."""
    log_path = folder / "node.log"
    async with AsyncExitStack() as stack:
        load = await stack.enter_async_context(generator(await described(world, project, JOBS, port, folder)))
        up = await stack.enter_async_context(
            node(project, port=port, workers=options.workers, log_path=log_path, clock=clock)
        )
        runs = Runs(up, load, world, connection, options, clock)
        await runs.dispatch(WARM_UP_S)
        full_per_s = (await runs.dispatch(FULL_S))["requests_per_s"]
        rate_per_s = options.load * full_per_s
        say(f"  full rate {full_per_s:,.0f}/s; {rate_per_s:,.0f}/s for {options.minutes:g} minutes")
        samples = await _samples(options, runs, Watch(up, connection, log_path), rate_per_s)
        await _save(load, folder)
    return samples, {
        "full_requests_per_s": round(full_per_s, 1),
        "load": options.load,
        "workers": options.workers,
        "slots": options.slots,
        "waiting_jobs": options.waiting_jobs,
        "connections": CLIENTS[-1],
    }


async def _samples(options: argparse.Namespace, runs: Runs, watch: Watch, rate_per_s: float) -> list[Sample]:
    """Take samples until the time is up."""
    whole_s = 60.0 * options.minutes
    stretch_s = min(options.sample_seconds, MOST_STRETCH_FRACTION * whole_s)
    samples: list[Sample] = []
    began_s = time.monotonic()
    while time.monotonic() - began_s + stretch_s / 2 < whole_s:
        done = await runs.dispatch(stretch_s, rate_per_s)
        samples.append(await watch.sample(time.monotonic() - began_s, done))
        say(json.dumps(asdict(samples[-1])))
    return samples


async def _save(load: Generator, folder: Path) -> None:
    await load.ask(save=str(folder / "told.npy"))


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="minutes of steady load")
    parser.add_argument("--load", type=float, default=0.5, help="share of the full rate, which is measured first")
    parser.add_argument("--sample-seconds", type=float, default=30.0, help="seconds of each sample")
    parser.add_argument("--workers", type=int, default=2, help="request workers of the node")
    parser.add_argument("--slots", type=int, default=1000, help="slots of each worker's job array")
    parser.add_argument("--waiting-jobs", type=int, default=400_000, help="the backlog, kept above half of it")
    options = parser.parse_args()
    if not 0.0 < options.load <= 1.0:
        parser.error(f"--load: expected more than 0 and at most 1, got {options.load}")
    for name in ("minutes", "sample_seconds"):
        if not getattr(options, name) > 0.0:
            parser.error(f"--{name.replace('_', '-')}: expected more than 0, got {getattr(options, name)}")
    return options


def main() -> None:
    run_and_tell(parsed(), measure, lambda figures: table({k: v for k, v in figures.items() if k != "samples"}))


if __name__ == "__main__":
    main()
