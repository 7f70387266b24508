"""Measures reading the state of a large batch and forecasting its completion.

    python -m benchmarks.snapshot --json

A fresh embedded PostgreSQL is filled with an app that has --rows rows of host_app_version, one per host, a history of
other batches, and a batch of --jobs jobs on as many hosts, of which half have returned and a quarter are in progress.
The snapshot is filled and the model fitted --repeats times, as the daemon does. Times are wall-clock times.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import asyncpg

from batch_estimator.estimate import estimate
from batch_estimator.filling import snapshot_of
from benchmarks.running import in_folder, parser_of, tell
from domain.apps import App, AppVersion, PlanClass
from domain.clock import SystemClock
from domain.settings import Settings
from domain.units import AppId, AppVersionId, BatchId
from store import embedded
from store.migrate import migrate
from store.postgres import PostgresStore, open_store

OTHER_BATCHES, OTHER_JOBS = 50, 20_000
STEP = 100_000

HOSTS = """
INSERT INTO host (
    host_id, volunteer_id, host_cpid, created_at, last_rpc_at, ncpus, flop_per_s, ram_bytes, disk_free_bytes,
    on_fraction, active_fraction, gpu_active_fraction, platforms
)
SELECT
    n, 1, md5(n::text), $3, $3::double precision - 86400 * 3 * random() ^ 2, 4, 1e9 * exp(random()), 8e9, 1e11, 1, 1, 1,
    '{linux}'
FROM generate_series($1::int, $2::int) AS n
"""
HAVS = """
INSERT INTO host_app_version (
    host_id, app_version_id, log_n, log_sum, log_sum_sq, n_valid, n_error, n_timeout, n_due
)
SELECT host_id, 1, 10, 10 * level, 10 * (level ^ 2 + 0.3), 10, floor(random() * 2), floor(random() * 1.5), 10
FROM (
    SELECT host_id, 10 + sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS level
    FROM generate_series($1::int, $2::int) AS host_id
) AS drawn
"""
BATCH = """
WITH batch AS (
    INSERT INTO batch (
        submitter_id, account_id, app_id, qos, state, jobs_total, created_at, order_tier, order_key, logical_start_at,
        logical_end_at, batch_flop
    )
    VALUES (1, 1, 1, 'throughput', 'active', $1, $2::double precision - 2 * 86400, 0, 0, 0, 0, 1)
    RETURNING batch_id
)
INSERT INTO job_class (
    batch_id, fpops_est_flop, fpops_bound_flop, memory_bytes, disk_bytes, delay_bound_s, ncpus, quorum, max_errors,
    max_instances, validator
)
SELECT batch_id, 1e13, 1e15, 1, 1, 604800, 1, 1, 3, 5, 'accept' FROM batch
RETURNING batch_id, job_class_id
"""
JOBS = """
WITH job AS (
    INSERT INTO job (batch_id, job_class_id) SELECT $1, $2 FROM generate_series(1, $3::int) RETURNING job_id
),
drawn AS (
    SELECT
        job_id, random() AS fate, 1 + floor(random() * $5::int)::int AS host_id,
        $4::double precision - 172800 * random() AS sent_at, exp(10 + 0.7 * (random() + random() - 1)) AS turnaround_s
    FROM job
)
INSERT INTO instance (
    job_id, batch_id, job_class_id, shard, state, created_at, host_id, volunteer_id, app_version_id, sent_at, due_at,
    timeout_at, est_runtime_s, reported_at
)
SELECT
    job_id, $1, $2, job_id % 64, CASE WHEN fate < 0.25 THEN 'unsent' WHEN back THEN 'valid' ELSE 'in_progress' END,
    $4::double precision - 172800, CASE WHEN sent THEN host_id END, CASE WHEN sent THEN host_id END,
    CASE WHEN sent THEN 1 END, CASE WHEN sent THEN sent_at END, CASE WHEN sent THEN sent_at + 604800 END,
    CASE WHEN sent THEN sent_at + 608400 END, 3600, CASE WHEN back THEN sent_at + turnaround_s END
FROM (
    SELECT *, fate >= 0.25 AS sent, fate >= 0.3 AND sent_at + turnaround_s < $4::double precision AS back FROM drawn
) AS drawn
"""
END_JOBS = """
UPDATE job SET state = 'valid', canonical_instance_id = instance.instance_id, ended_at = instance.reported_at
FROM instance
WHERE job.batch_id = $1 AND instance.job_id = job.job_id AND instance.state = 'valid'
"""


async def prepare(dsn: str, rows: int, jobs: int) -> BatchId:
    """Create the app, its hosts, its history and the batch."""
    now = SystemClock().now()
    await migrate(dsn, now=now)
    store = await open_store(dsn)
    await store.applications.add_app(App(AppId(0), "app"))
    await store.applications.add_app_version(AppVersion(AppVersionId(0), AppId(1), "linux", 100, PlanClass("")))
    await store.close()
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO volunteer (email, authenticator_nonce, authenticator_hash, created_at) "
        "VALUES ('a@example.org', '', decode(repeat('00', 32), 'hex'), 0)"
    )
    for first in range(1, rows + 1, STEP):
        last = min(rows, first + STEP - 1)
        await connection.execute(HOSTS, first, last, now)
        await connection.execute(HAVS, first, last)
    batch_id = 0
    for size in [OTHER_JOBS] * OTHER_BATCHES + [jobs]:
        made = await connection.fetchrow(BATCH, size, now)
        assert made is not None
        batch_id = made["batch_id"]
        await connection.execute(JOBS, batch_id, made["job_class_id"], size, now, rows)
    await connection.execute(END_JOBS, batch_id)
    for table in ("host", "host_app_version", "job", "instance"):
        await connection.execute(f"VACUUM (ANALYZE) {table}")
    await connection.execute("CHECKPOINT")
    await connection.close()
    return BatchId(batch_id)


async def timed(store: PostgresStore, batch_id: BatchId, repeats: int) -> dict[str, float]:
    """Return the medians over the repeats, and the first time, which is with cold caches."""
    fills, fits = list[float](), list[float]()
    rows = dict[str, float]()
    for _ in range(repeats + 1):
        began = time.perf_counter()
        now = SystemClock().now()
        tables = await store.forecasting.of_batch(batch_id, now=now)
        assert tables is not None
        snapshot = snapshot_of(tables, now, Settings())
        filled = time.perf_counter()
        forecast = estimate(snapshot)
        fills.append(1000 * (filled - began))
        fits.append(1000 * (time.perf_counter() - filled))
        assert forecast.q50_at > snapshot.now
        rows = {
            "instances": len(snapshot.instances.job),
            "hav_rows": len(snapshot.havs.host_id),
            "sampled_instances": len(snapshot.sent.host_id),
            "active_hosts": snapshot.active_hosts,
        }
    together = [fill + fit for fill, fit in zip(fills[1:], fits[1:], strict=True)]
    return rows | {
        "first_ms": round(fills[0] + fits[0], 1),
        "fill_ms": round(statistics.median(fills[1:]), 1),
        "fit_ms": round(statistics.median(fits[1:]), 1),
        "together_ms": round(statistics.median(together), 1),
        "together_worst_ms": round(max(together), 1),
    }


def reference_ms() -> float:
    """Time a fixed operation in the same run: sorting 100,000 numbers."""
    times = []
    for _ in range(30):
        numbers = [(7919 * number) % 100_003 for number in range(100_000)]
        began = time.perf_counter()
        numbers.sort()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


async def measure(rows: int, jobs: int, repeats: int, folder: Path) -> dict[str, float]:
    dsn = await asyncio.to_thread(embedded.ensure_running, folder / "postgres")
    try:
        batch_id = await prepare(dsn, rows, jobs)
        store = await open_store(dsn, min_size=1, max_size=2)
        answers = await timed(store, batch_id, repeats)
        await store.close()
    finally:
        embedded.release(folder / "postgres")
    reference = reference_ms()
    ratio = answers["together_ms"] / reference
    return {
        "rows": rows,
        "jobs": jobs,
        **answers,
        "reference_ms": round(reference, 2),
        "reference_ratio": round(ratio, 1),
    }


def main() -> None:
    parser = parser_of(__doc__, folder="folder for the database; default: a temporary one")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of host_app_version")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of the batch")
    parser.add_argument("--repeats", type=int, default=20)
    asked = parser.parse_args()
    answers = in_folder(lambda folder: measure(asked.rows, asked.jobs, asked.repeats, folder), within=asked.folder)
    tell(answers, as_json=asked.json)


if __name__ == "__main__":
    main()
