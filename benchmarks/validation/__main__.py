"""Measures how many results per second one or several background processes validate.

`python -m benchmarks.validation [--processes 1,2] [--results 20000] [--repeats 3] --json`. The project, on an embedded
database as in `benchmarks.dispatch`, has waiting jobs in 50 batches. Each run starts the background processes of as
many nodes, reports `--results` results of different jobs in one transaction, and waits until all are settled. The
numbers of processes are measured in turn. At the end, every result must have been counted once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import asyncpg
import psutil

from administration.project import Project
from benchmarks.dispatch.figures import table
from benchmarks.dispatch.processes import STOP_S, cpu_s_of, server_cpu_s
from benchmarks.dispatch.world import HOSTS, World, install_project
from benchmarks.running import BenchmarkError, parser_of, reference_us, run_and_tell, say
from benchmarks.statements import statements
from domain.clock import Clock
from domain.units import HOUR_S, Seconds, later
from runtime.project import database_dsn, open_database, release_database

WARM_S = Seconds(2.0)  # time for the processes to run all their periodic tasks once
LOOK_S = Seconds(0.02)  # interval of checking for marks
MOST_S = Seconds(600.0)  # time limit of one run
SQL = statements("validation")
Figures = dict[str, float]


class Processes:
    """The project's background processes, and their CPU time and that of the database."""

    def __init__(self, project: Project, dsn: str, log_path: Path) -> None:
        self._command = ["-m", "runtime.process", "--data-dir", str(project.data_dir), "--database-url", dsn]
        self._log_path = log_path
        self._postmaster = psutil.Process(int((project.postgres_dir / "postmaster.pid").read_text().split()[0]))
        self._running: list[asyncio.subprocess.Process] = []

    async def start(self, count: int) -> None:
        """Start this many processes, and wait until all are ready."""
        for _ in range(count):
            with self._log_path.open("ab") as log:
                started = await asyncio.create_subprocess_exec(
                    *(sys.executable, *self._command, "background"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                )
            self._running.append(started)
            assert started.stdout is not None
            while (line := await started.stdout.readline()) != b"ready\n":
                if not line:
                    raise BenchmarkError(f"a process ended: {self._log_path.read_text(errors='replace')[-2000:]}")

    def cpu_s(self) -> tuple[float, float]:
        """Return the CPU seconds of the background processes and of the database so far."""
        return sum(cpu_s_of(one.pid) for one in self._running), server_cpu_s(self._postmaster)

    async def stop(self) -> None:
        for one in self._running:
            one.terminate()
        for one in self._running:
            await asyncio.wait_for(one.communicate(), STOP_S)
        self._running.clear()


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Run the whole benchmark in an empty directory and return its figures."""
    project = await install_project(folder, url="http://127.0.0.1:9/", slots=1000, clock=clock)
    total = options.results * options.repeats * len(options.processes)
    try:
        async with open_database(project, clock) as store:
            dsn = await database_dsn(project)
            connection = await asyncpg.connect(dsn)
            processes = Processes(project, dsn, folder / "background.log")
            try:
                say(f"filling a project with {total:,} waiting jobs …")
                await World(store, connection, clock, jobs=1).fill(project, total)
                before = await connection.fetchrow(SQL["validated"])
                found: dict[int, list[Figures]] = defaultdict(list)
                for _ in range(options.repeats):
                    for count in options.processes:
                        found[count].append(await _run(processes, connection, count, options.results, clock))
                after = await connection.fetchrow(SQL["validated"])
            finally:
                await processes.stop()
                await connection.close()
    finally:
        release_database(project)
    assert before is not None and after is not None
    counted = {f"{name}_miscounted": after[name] - before[name] - total for name in ("jobs", "results")}
    return {"results": options.results, "repeats": options.repeats, **_medians(found), **counted} | {
        "reference_us": round(reference_us(), 1)
    }


async def _run(processes: Processes, connection: asyncpg.Connection, count: int, results: int, clock: Clock) -> Figures:
    """Validate the results with this many processes."""
    await connection.execute("VACUUM (ANALYZE) job_todo, instance, job, host_app_version", timeout=600.0)
    await connection.execute("CHECKPOINT", timeout=600.0)
    await processes.start(count)
    await clock.sleep(WARM_S)
    now = clock.now()
    version_id = await connection.fetchval("SELECT max(app_version_id) FROM app_version")
    await connection.execute(SQL["report"], results, later(now, -HOUR_S), now, version_id, HOSTS, timeout=600.0)
    began_s, cpu = clock.monotonic(), processes.cpu_s()
    while not await connection.fetchval(SQL["settled"]):
        if clock.monotonic() > began_s + MOST_S:
            raise BenchmarkError(f"not validated after {MOST_S:.0f} s")
        await clock.sleep(LOOK_S)
    took_s = clock.monotonic() - began_s
    python_s, postgres_s = (after - before for after, before in zip(processes.cpu_s(), cpu, strict=True))
    await processes.stop()
    say(f"  {count} processes: {results / took_s:,.0f} results/s")
    return {
        "results_per_s": results / took_s,
        "python_cpu_us_per_result": 1e6 * python_s / results,
        "postgres_cpu_us_per_result": 1e6 * postgres_s / results,
    }


def _medians(found: dict[int, list[Figures]]) -> Figures:
    """Return the medians for each number of processes, and the median ratios of their rates to the first rate.

    >>> _medians({1: [{"results_per_s": 10.0}, {"results_per_s": 20.0}], 2: [{"results_per_s": 15.0}] * 2})
    {'results_per_s_1': 15.0, 'results_per_s_2': 15.0, 'ratio_2': 1.125}
    """
    figures = {
        f"{name}_{count}": round(median(run[name] for run in runs), 1)
        for count, runs in found.items()
        for name in runs[0]
    }
    first, *others = found
    for count in others:
        pairs = zip(found[count], found[first], strict=True)
        ratios = [one["results_per_s"] / base["results_per_s"] for one, base in pairs]
        figures[f"ratio_{count}"] = round(median(ratios), 3)
    return figures


def _numbers(text: str) -> Sequence[int]:
    return [int(number) for number in text.split(",")]


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--processes", type=_numbers, default=[1, 2], help="numbers of background processes")
    parser.add_argument("--results", type=int, default=20_000, help="results of each run")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    run_and_tell(parsed(), measure, table)


if __name__ == "__main__":
    main()
