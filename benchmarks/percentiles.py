"""Measures the time and memory of a complete host statistics run, and its effect on requests.

    python -m benchmarks.percentiles --rows 10000000 --json

Two embedded databases are filled, one with --rows rows of host_app_version (benchmarks/populations.py), the other with
a tenth as many. A run is the complete cron job (read, rank, write every percentile, switch) in a separate process,
whose peak memory the system measures. The two sizes are measured alternately, and medians are reported.

The larger database belongs to a node, `muster up` with the hosts, jobs and load generator of benchmarks.dispatch. It
serves --requests-per-s clients over HTTP throughout, each of which reports a result and receives another job:
`request_p99_ms` is for requests during the runs on that database, `request_p99_ms_before` for those before any run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import asyncpg
import numpy as np

from benchmarks.dispatch.__main__ import described
from benchmarks.dispatch.processes import Generator, free_port, generator, node
from benchmarks.dispatch.world import World, install_project
from benchmarks.populations import fill
from benchmarks.running import in_folder, parser_of, say, tell
from domain.clock import Clock, SystemClock
from hoststats.ports import HostStatisticsPorts
from hoststats.service import HostStatistics
from runtime.project import database_dsn, open_database, release_database
from store import embedded
from store.migrate import migrate
from store.postgres import open_store

WAITING_JOBS = 60_000
SLOTS = 1000
CONNECTIONS = 16
BEFORE_S = 20.0
STRETCH_S = 2.0  # length of the successive load periods during a run
RUNS_OFF = {"ranking.run_interval_s": 0.0, "ranking.refresh_interval_s": 0.0}  # only the measured run ranks


async def run_alone(dsn: str) -> dict[str, float]:
    """Perform one run in this process."""
    store = await open_store(dsn, min_size=1, max_size=2)
    service = HostStatistics(
        HostStatisticsPorts(store.applications, store.hav_tables, store.generations), SystemClock()
    )
    began = time.perf_counter()
    run = await service.run(report=lambda progress: say(f"  {time.perf_counter() - began:6.1f} s  {progress}"))
    seconds = time.perf_counter() - began
    await store.close()
    assert run is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cpu_s = time.process_time()
    return {"rows": run.rows, "ranked": run.ranked, "seconds": seconds, "python_cpu_s": cpu_s, "peak_bytes": peak}


async def run_in_child(dsn: str) -> dict[str, float]:
    """Perform one run in a separate process. Return its figures and the database CPU of the connections it closed."""
    before_s = await ended_connections_cpu_s(dsn)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.percentiles", "--dsn", dsn, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    if child.returncode:
        raise SystemExit("the run failed")
    answer: dict[str, float] = json.loads(out.splitlines()[-1])
    return {**answer, "database_cpu_s": round(await ended_connections_cpu_s(dsn) - before_s, 2)}


async def ended_connections_cpu_s(dsn: str) -> float:
    """Return the CPU seconds of server processes that have ended, which excludes the node's open connections."""
    connection = await asyncpg.connect(dsn)
    data = Path(await connection.fetchval("SHOW data_directory"))
    await connection.close()
    pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Requests:
    """Clients that send requests at a constant rate, and their latencies."""

    load: Generator
    port: int
    rate_per_s: float
    folder: Path
    failed: float = 0
    without_work: float = 0
    latencies_s: dict[str, list[float]] = field(default_factory=dict)

    async def stretch(self, name: str, seconds: float) -> None:
        path = self.folder / "latencies.npy"
        done = await self.load.ask(
            server="dispatch",
            port=self.port,
            connections=CONNECTIONS,
            seconds=seconds,
            rate_per_s=self.rate_per_s,
            keep_alive=False,
            latencies=str(path),
        )
        self.failed += done["failed"]
        self.without_work += done["without_work"]
        self.latencies_s.setdefault(name, []).extend(np.load(path).tolist())

    async def during(self, name: str, task: asyncio.Task[dict[str, float]]) -> dict[str, float]:
        """Send requests until the task is done. Return its result."""
        while not task.done():
            await self.stretch(name, STRETCH_S)
        return await task

    def quantile_ms(self, name: str, share: float) -> float:
        return round(1000.0 * float(np.quantile(self.latencies_s[name], share)), 2)


@asynccontextmanager
async def small_database(folder: Path, rows: int, clock: Clock) -> AsyncIterator[str]:
    dsn = await asyncio.to_thread(embedded.ensure_running, folder)
    try:
        await migrate(dsn, now=clock.now())
        store, connection = await open_store(dsn, max_size=2), await asyncpg.connect(dsn)
        await fill(store, connection, rows, now=clock.now())
        await connection.close()
        await store.close()
        yield dsn
    finally:
        embedded.release(folder)


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, float]:
    port = free_port()
    project = await install_project(folder, url=f"http://127.0.0.1:{port}/", slots=SLOTS, clock=clock)
    dsn = await database_dsn(project)
    try:
        say(f"filling: {options.rows // 10:,} rows, then {options.rows:,} and {WAITING_JOBS:,} jobs")
        async with small_database(folder / "small", options.rows // 10, clock) as small_dsn:
            async with open_database(project, clock) as store:
                connection = await asyncpg.connect(dsn)
                for key, value in RUNS_OFF.items():
                    await store.settings.set_setting(key, value, now=clock.now(), who="benchmark", why="")
                world = World(store, connection, clock, jobs=1)
                await world.fill(project, WAITING_JOBS)
                await fill(store, connection, options.rows, now=clock.now())
                world_path = await described(world, project, 1, port, folder)
                await connection.close()
            async with (
                generator(world_path) as load,
                node(project, port=port, workers=options.workers, log_path=folder / "node.log", clock=clock),
            ):
                requests = Requests(load, port, options.requests_per_s, folder)
                return await measured(options, dsn, small_dsn, requests)
    finally:
        release_database(project)


async def measured(options: argparse.Namespace, dsn: str, small_dsn: str, requests: Requests) -> dict[str, float]:
    """Perform runs on both databases alternately, with the node under load throughout."""
    await requests.stretch("warm-up", BEFORE_S / 2)
    await requests.stretch("before", BEFORE_S)
    small, large = list[dict[str, float]](), list[dict[str, float]]()
    for _ in range(options.repeats):
        for answers, database, name in ((small, small_dsn, "small"), (large, dsn, "large")):
            answers.append(await requests.during(name, asyncio.create_task(run_in_child(database))))
            say(f"{name}: {json.dumps(answers[-1])}, p99 so far {requests.quantile_ms(name, 0.99)} ms")
    seconds_small, seconds = (median(run["seconds"] for run in runs) for runs in (small, large))
    rows_small, rows = small[0]["rows"], large[0]["rows"]
    reference = reference_s()
    return {
        "rows": rows,
        "ranked": large[0]["ranked"],
        "seconds": round(seconds, 2),
        "seconds_least": round(min(run["seconds"] for run in large), 2),
        "seconds_most": round(max(run["seconds"] for run in large), 2),
        "python_cpu_s": round(median(run["python_cpu_s"] for run in large), 2),
        "database_cpu_s": round(median(run["database_cpu_s"] for run in large), 2),
        "peak_bytes": max(run["peak_bytes"] for run in large),
        "growth": round(seconds / rows * rows_small / seconds_small, 3),
        "seconds_of_a_tenth": round(seconds_small, 2),
        "requests_per_s": requests.rate_per_s,
        "requests": len(requests.latencies_s["large"]),
        "request_p50_ms_before": requests.quantile_ms("before", 0.5),
        "request_p50_ms": requests.quantile_ms("large", 0.5),
        "request_p99_ms_before": requests.quantile_ms("before", 0.99),
        "request_p99_ms": requests.quantile_ms("large", 0.99),
        "request_most_ms": requests.quantile_ms("large", 1.0),
        "requests_failed": requests.failed,
        "requests_without_work": requests.without_work,
        "reference_s": round(reference, 3),
        "reference_ratio": round(seconds / reference, 1),
    }


def reference_s() -> float:
    """Time a fixed operation of the same kind in the same run: sorting ten million numbers."""
    numbers = np.random.default_rng(2).random(10_000_000)
    began = time.perf_counter()
    np.argsort(numbers)
    return time.perf_counter() - began


def main() -> None:
    parser = parser_of(__doc__, folder="folder for the database; default: a temporary one")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of host_app_version")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size")
    parser.add_argument("--requests-per-s", type=float, default=50.0)
    parser.add_argument("--workers", type=int, default=1, help="request workers of the node")
    parser.add_argument("--dsn", default=None, help=argparse.SUPPRESS)  # of the child process
    options = parser.parse_args()
    if options.dsn is not None:
        print(json.dumps(asyncio.run(run_alone(options.dsn))))
        return
    answers = in_folder(lambda folder: measure(options, folder, SystemClock()), within=options.folder)
    tell(answers, as_json=options.json)


if __name__ == "__main__":
    main()
