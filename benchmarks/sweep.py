"""Measures the CPU time of forecasting every active batch of a large project once, from the database.

    python -m benchmarks.sweep --json

A fresh embedded PostgreSQL is filled with an app that has --rows rows of host_app_version, one per host, a history of
other batches, and --batches active batches of --jobs jobs each, half of which have returned and a quarter of which are
in progress. The background process's estimator forecasts all of them, as after a restart, and then --repeats more
times. The result is the CPU time of this process and of all PostgreSQL processes.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

import asyncpg
import psutil

from batch_estimator.service import Estimator, RefitOutcome, RefitPass
from benchmarks.dispatch.processes import server_cpu_s
from benchmarks.running import in_folder, parser_of, tell
from benchmarks.snapshot import BATCH, JOBS, prepare, reference_ms
from domain.clock import SystemClock
from domain.settings import Settings
from runtime.logs import configure_logs
from store import embedded
from store.postgres import PostgresStore, open_store

END_JOBS = """
UPDATE job SET state = 'valid', canonical_instance_id = instance.instance_id, ended_at = instance.reported_at
FROM instance
WHERE instance.job_id = job.job_id AND instance.state = 'valid' AND job.state = 'open' AND job.batch_id > $1
"""
COUNTS = """
INSERT INTO batch_count (batch_id, stripe, jobs_validated, unsent, in_progress, sent, reported, last_first_dispatch_at)
SELECT
    batch_id, 0, count(*) FILTER (WHERE state = 'valid'), count(*) FILTER (WHERE state = 'unsent'),
    count(*) FILTER (WHERE state = 'in_progress'), count(*) FILTER (WHERE sent_at IS NOT NULL),
    count(*) FILTER (WHERE reported_at IS NOT NULL), max(sent_at)
FROM instance
WHERE batch_id > $1
GROUP BY batch_id
"""
END_OTHERS = "UPDATE batch SET state = 'complete', ended_at = $2 WHERE batch_id <= $1"


async def with_batches(dsn: str, rows: int, batches: int, jobs: int) -> None:
    """Create the app, its hosts and its history as in benchmarks.snapshot, end those batches, and create the active
    batches.
    """
    others = await prepare(dsn, rows, 1)
    now = SystemClock().now()
    connection = await asyncpg.connect(dsn)
    await connection.execute(END_OTHERS, others, now)
    for _ in range(batches):
        made = await connection.fetchrow(BATCH, jobs, now)
        assert made is not None
        await connection.execute(JOBS, made["batch_id"], made["job_class_id"], jobs, now, rows)
    await connection.execute(END_JOBS, others)
    await connection.execute(COUNTS, others)
    for table in ("batch", "batch_count", "job_class", "job", "instance"):
        await connection.execute(f"VACUUM (ANALYZE) {table}")
    await connection.execute("CHECKPOINT")
    await connection.close()


class Meter:
    """CPU seconds of this process and of a server since the last reading."""

    def __init__(self, postmaster_pid: int) -> None:
        self._postmaster = psutil.Process(postmaster_pid)
        self._at = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.process_time(), server_cpu_s(self._postmaster), time.perf_counter()

    def look(self) -> tuple[float, float, float]:
        """Return CPU seconds of estimator and server, and wall-clock seconds."""
        before, self._at = self._at, self._now()
        own, server, passed = (after - earlier for after, earlier in zip(self._at, before, strict=True))
        return own, server, passed


async def restarted(estimator: Estimator) -> RefitPass:
    """Forecast all batches in steps, as after a restart."""
    done = list[RefitPass]()
    while not done or done[-1].more:
        done.append(await estimator.run_once())
    return RefitPass(tuple(one for each in done for one in each.done))


async def swept(store: PostgresStore, meter: Meter, repeats: int, batches: int) -> dict[str, float]:
    """Return the figures of the first sweep, and medians over the other sweeps."""
    estimator = Estimator(store.forecasting, store.forecasts, Settings, SystemClock())
    figures = list[tuple[float, float, float]]()
    for number in range(repeats + 1):
        meter.look()
        made = await restarted(estimator) if number == 0 else await estimator.run_all()
        figures.append(meter.look())
        kept = made.count(RefitOutcome.CHANGED) + made.count(RefitOutcome.HELD)
        assert (kept, made.fallbacks) == (batches, 0), made
        print(f"sweep {number}: {figures[-1]}", file=sys.stderr)
    own, server, passed = (statistics.median(column) for column in zip(*figures[1:], strict=True))
    return {
        "first_cpu_s": round(figures[0][0] + figures[0][1], 2),
        "first_s": round(figures[0][2], 2),
        "estimator_cpu_s": round(own, 2),
        "postgres_cpu_s": round(server, 2),
        "cpu_s": round(own + server, 2),
        "seconds": round(passed, 2),
        "cpu_ms_per_batch": round(1000 * (own + server) / batches, 1),
    }


async def measure(rows: int, batches: int, jobs: int, repeats: int, folder: Path) -> dict[str, float]:
    dsn = await asyncio.to_thread(embedded.ensure_running, folder / "postgres")
    try:
        await with_batches(dsn, rows, batches, jobs)
        store = await open_store(dsn, min_size=1, max_size=2)
        pid = int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
        answers = await swept(store, Meter(pid), repeats, batches)
        await store.close()
    finally:
        embedded.release(folder / "postgres")
    reference = reference_ms()
    return {
        "rows": rows,
        "batches": batches,
        "jobs": jobs,
        **answers,
        "reference_ms": round(reference, 2),
        "reference_ratio": round(1000 * answers["cpu_s"] / reference, 1),
    }


def main() -> None:
    parser = parser_of(__doc__, folder="folder for the database; default: a temporary one")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of host_app_version")
    parser.add_argument("--batches", type=int, default=1000, help="active ones")
    parser.add_argument("--jobs", type=int, default=500, help="jobs of each batch")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    configure_logs("warning")
    sizes = (asked.rows, asked.batches, asked.jobs, asked.repeats)
    answers = in_folder(lambda folder: measure(*sizes, folder), within=asked.folder)
    tell(answers, as_json=asked.json)


if __name__ == "__main__":
    main()
