"""Fills a database with hosts and their rows of host_app_version for ranking.

Each host has five rows, one per app, half of them for CPUs and half for GPUs, which gives ten populations to rank. 1 %
of the rows belong to newcomers, and 10 % of the hosts are silent. Ids continue after the existing ids.
"""

from __future__ import annotations

import asyncpg

from domain.apps import NVIDIA, App, AppVersion, PlanClass
from domain.units import DAY_S, AppId, AppVersionId, Instant
from store.postgres import PostgresStore

APPS = 5  # rows per host
CHUNK = 100_000  # hosts per statement
SILENT_FRACTION, NEWCOMER_FRACTION = 0.1, 0.01
CUDA = PlanClass("cuda", gpu_type=NVIDIA)

VOLUNTEER = """
INSERT INTO volunteer (volunteer_id, email, authenticator_nonce, authenticator_hash, created_at)
SELECT coalesce(max(volunteer_id), 0) + 1, 'populations@example.org', '', decode(repeat('ff', 32), 'hex'), 0
FROM volunteer
RETURNING volunteer_id
"""
HOSTS = """
INSERT INTO host (
    host_id, volunteer_id, host_cpid, created_at, last_rpc_at, ncpus, flop_per_s, ram_bytes, disk_free_bytes,
    on_fraction, active_fraction, gpu_active_fraction, platforms
)
SELECT
    n, $5::int, md5('population ' || n), $3,
    CASE WHEN random() < $4::double precision THEN $6 ELSE $7::double precision END,
    4, 1e9, 8e9, 1e11, 0.5 + 0.5 * random(), 1, 1, '{x86_64-pc-linux-gnu}'
FROM generate_series($1::int, $2::int) AS n
"""
# $5 has the CPU versions by app, $6 the GPU versions. Scores are normal; a third of the rows failed recently.
ROWS = """
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at, speed_n, speed_sum, speed_sum_sq, tight_n,
    tight_sum, tight_sum_sq, tight_missed_n, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum, log_sum_sq,
    n_valid, n_error, n_due, clean_since_at
)
SELECT
    host_id, CASE WHEN (host_id + app) % 2 = 0 THEN ($5::int[])[app] ELSE ($6::int[])[app] END,
    CASE WHEN random() < 0.33 THEN floor(random() * 11) ELSE 11 + floor(random() * 30) END, 50,
    $3::double precision - 86400 * random(), n, n * 1e-9 * exp(score), n * 1e-18 * exp(2 * score), n / 4, n / 4 * score,
    n / 4 * (score * score + 0.1), n / 40, n, n * score, n * (score * score + 0.2), 30, 30 * (score + 8),
    30 * ((score + 8) ^ 2 + 0.2), 30, 1, 30, $3::double precision - 60 * 86400 * random()
FROM (
    SELECT
        host_id, app, sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS score,
        CASE WHEN random() < $4::double precision THEN 1 ELSE 5 + 25 * random() END AS n
    FROM generate_series($1::int, $2::int) AS host_id
    CROSS JOIN generate_series(1, array_length($5::int[], 1)) AS app
    ORDER BY host_id, app
) AS drawn
"""


async def fill(store: PostgresStore, connection: asyncpg.Connection, rows: int, *, now: Instant) -> None:
    """Add this many rows for five new apps."""
    on_cpu, on_gpu = await versions(store, now)
    volunteer_id = await connection.fetchval(VOLUNTEER)
    hosts = rows // APPS
    before = await connection.fetchval("SELECT coalesce(max(host_id), 0) FROM host")
    for first in range(before + 1, before + hosts + 1, CHUNK):
        last = min(before + hosts, first + CHUNK - 1)
        called = (now - 8 * DAY_S, now - DAY_S)
        await connection.execute(HOSTS, first, last, now, SILENT_FRACTION, volunteer_id, *called, timeout=3600.0)
        await connection.execute(ROWS, first, last, now, NEWCOMER_FRACTION, on_cpu, on_gpu, timeout=3600.0)
    for table in ("host", "host_app_version"):
        await connection.execute(f"VACUUM (ANALYZE) {table}", timeout=3600.0)
    await connection.execute("CHECKPOINT", timeout=3600.0)


async def versions(store: PostgresStore, now: Instant) -> tuple[list[AppVersionId], list[AppVersionId]]:
    """Create each app's version for CPUs and its version for GPUs."""
    await store.applications.put_plan_class(CUDA)
    made: dict[str, list[AppVersionId]] = {"": [], CUDA.name: []}
    for number in range(1, APPS + 1):
        app = await store.applications.add_app(App(AppId(0), f"population{number}"))
        for plan_class in (PlanClass(""), CUDA):
            version = AppVersion(AppVersionId(0), app.app_id, "linux", 100, plan_class, created_at=now)
            made[plan_class.name].append(await store.applications.add_app_version(version))
    return made[""], made[CUDA.name]
