"""Measures committing a batch of a million jobs, compared with a bare COPY of the same number of rows.

`python -m benchmarks.submit --jobs 1000000 [--through store|api] [--json]`. `muster init` creates the embedded, durable
database. "store" submits as `muster batch submit` does, with one job class and a command line for each job. "api" posts
one JSON document that lists every job to a running `muster up`. Each repeat first copies as many rows to tables without
indexes; `ratio_to_copy` compares the two within the repeat. If the process or its database stops for more than a
minute, the connection is closed as for any submission (`store.pool.COMMAND_TIMEOUT_S`), so measure again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import stat
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import asyncpg
import psutil

from administration.accounts import AccountKeys
from administration.apps import VersionDraft, add_app_version
from administration.batches import Batches
from administration.project import Project
from administration.signing import with_project_key
from benchmarks.dispatch.processes import Node, free_port, node
from benchmarks.running import in_folder, say
from domain.apps import App
from domain.clock import Clock, SystemClock
from domain.units import AppId
from muster_client import Client
from runtime.project import database_dsn, install, open_database, release_database
from transfer.keys import load_keys
from transfer.project_files import ProjectFiles

APP = "pi"
PLATFORM = "x86_64-pc-linux-gnu"
JOB = {"fpops_est": 3.6e12, "delay_bound_s": 604800.0, "outputs": [{"name": "out", "max_bytes": 100_000}]}
COMMAND_LINE = "--seed {i}"
BARE = (
    "DROP TABLE IF EXISTS bare_job, bare_instance; "
    "CREATE TABLE bare_job (LIKE job INCLUDING DEFAULTS INCLUDING IDENTITY); "
    "CREATE TABLE bare_instance (LIKE instance INCLUDING DEFAULTS INCLUDING IDENTITY)"
)
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
SAMPLE_S = 0.2
LONG_S = 3600.0

Submit = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Repeat:
    """One submission and the COPY before it."""

    seconds: float
    jobs_per_s: float
    copy_seconds: float
    ratio_to_copy: float
    wal_mib: float
    peak_rss_mib: float  # of the submitting process, or of the request worker


async def make_app(project: Project, clock: Clock) -> None:
    """Create an app for the batches."""
    program = project.data_dir / "program.sh"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    async with open_database(project, clock) as store:
        await store.applications.add_app(App(AppId(0), APP))
        new = VersionDraft(APP, PLATFORM, 100, program)
        await add_app_version(store.applications, project, new, clock=clock, sign=with_project_key(project))


@asynccontextmanager
async def through_store(project: Project, jobs: int, clock: Clock) -> AsyncIterator[tuple[Submit, psutil.Process]]:
    """Yield a function that submits as the command line does."""
    batch = {"app": APP, "qos": "throughput", "jobs": {**JOB, "count": jobs, "command_line": COMMAND_LINE}}
    async with open_database(project, clock) as store:
        batches = Batches(store, ProjectFiles(project.files_dir), clock)
        yield lambda: batches.submit(batch), psutil.Process()


@asynccontextmanager
async def through_api(project: Project, jobs: int, clock: Clock) -> AsyncIterator[tuple[Submit, psutil.Process]]:
    """Yield a function that submits as a remote script does, listing each job."""
    lines = [{"command_line": COMMAND_LINE.replace("{i}", str(i))} for i in range(jobs)]
    batch = {"app": APP, "qos": "throughput", "jobs": JOB, "job": lines}
    port = free_port()
    token = AccountKeys(load_keys(project.keys_dir).account_secret).api_token()
    async with AsyncExitStack() as stack:
        log_path = project.data_dir / "node.log"
        running: Node = await stack.enter_async_context(
            node(project, port=port, workers=1, log_path=log_path, clock=clock)
        )
        client = await stack.enter_async_context(Client(f"http://127.0.0.1:{port}/", token))
        yield lambda: client.submit(batch), running.workers[0]


async def bare_copy(connection: asyncpg.Connection, jobs: int, now: float) -> None:
    """Copy the same rows into tables with the same columns but without indexes."""
    await connection.copy_records_to_table(
        "bare_job",
        columns=["job_id", "batch_id", "job_class_id", "command_line", "inputs"],
        records=((i, 1, 1, f"--seed {i}", None) for i in range(jobs)),
        timeout=LONG_S,
    )
    await connection.copy_records_to_table(
        "bare_instance",
        columns=["job_id", "batch_id", "job_class_id", "shard", "created_at"],
        records=((i, 1, 1, i % 64, now) for i in range(jobs)),
        timeout=LONG_S,
    )


async def peak_rss(process: psutil.Process, stop: asyncio.Event, clock: Clock) -> float:
    """Return the peak resident memory until `stop`, in MiB."""
    peak = 0.0
    while not stop.is_set():
        peak = max(peak, process.memory_info().rss / 2**20)
        await clock.sleep(SAMPLE_S)
    return peak


async def one_repeat(
    connection: asyncpg.Connection, submit: Submit, process: psutil.Process, jobs: int, clock: Clock
) -> Repeat:
    await connection.execute(BARE)
    await connection.execute("CHECKPOINT", timeout=LONG_S)
    began_s = clock.monotonic()
    await bare_copy(connection, jobs, clock.now())
    copy_s = clock.monotonic() - began_s
    await connection.execute("CHECKPOINT", timeout=LONG_S)
    stop = asyncio.Event()
    watch = asyncio.create_task(peak_rss(process, stop, clock))
    wal_before, began_s = await connection.fetchval(WAL), clock.monotonic()
    await submit()
    seconds = clock.monotonic() - began_s
    wal = await connection.fetchval(WAL) - wal_before
    stop.set()
    return Repeat(seconds, jobs / seconds, copy_s, seconds / copy_s, float(wal) / 2**20, await watch)


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Return medians over the repeats."""
    settings: dict[str, object] = {"project.url": "http://127.0.0.1:8080/"}
    project = await install(folder / "project", None, settings, who="benchmark", clock=clock)
    await make_app(project, clock)
    dsn = await database_dsn(project)
    through = through_api if options.through == "api" else through_store
    repeats = []
    connection = await asyncpg.connect(dsn)
    try:
        async with through(project, options.jobs, clock) as (submit, process):
            for _ in range(options.repeats):
                repeats.append(await one_repeat(connection, submit, process, options.jobs, clock))
                say(f"  {repeats[-1].seconds:.1f} s, {repeats[-1].ratio_to_copy:.2f} times a bare COPY")
        stored = await connection.fetchval("SELECT count(*) FROM job", timeout=LONG_S)
        nbytes = await connection.fetchval("SELECT pg_total_relation_size('job') + pg_total_relation_size('instance')")
        fsync = await connection.fetchval("SELECT current_setting('fsync')")
    finally:
        await connection.close()
        release_database(project)
    if stored != options.jobs * options.repeats:
        raise RuntimeError(f"{options.jobs * options.repeats} jobs were submitted, {stored} are stored")
    lines = [asdict(one) for one in repeats]
    medians = {key: round(statistics.median(line[key] for line in lines), 3) for key in lines[0]}
    return {
        "jobs": options.jobs,
        **medians,
        "seconds_worst": round(max(one.seconds for one in repeats), 3),
        "bytes_per_job": round(nbytes / stored),
        "through": options.through,
        "repeats": options.repeats,
        "fsync": fsync,
        "own_peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--through", choices=("store", "api"), default="store")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = in_folder(lambda folder: measure(options, folder, SystemClock()))
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:20} {value!s:>12}")


if __name__ == "__main__":
    main()
