"""How long does a whole run of the host statistics take, in how much memory, and what do requests notice of it?

    python -m benchmarks.percentiles --rows 10000000 --json

A fresh embedded PostgreSQL is filled with --rows rows of host_app_version: five per host, one per app, half of them for
CPUs and half for GPUs, so that ten populations are ranked; a hundredth of the rows are newcomers', a tenth of the hosts
are silent. The run is the whole one that the cron job makes (read, rank, write every percentile, switch), in a process
of its own whose peak memory is what the system says. It is measured with a tenth of the rows and with all of them.

Meanwhile this process reads what a scheduler request reads of one host, and writes what it writes, 50 times a second:
the latency is compared with the same before the run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import asyncpg
import numpy as np

from domain.apps import NVIDIA, App, AppVersion, PlanClass
from domain.clock import SystemClock
from domain.dispatch import RequestKey, RequestWrites
from domain.units import AppId, AppVersionId, HostId
from hoststats.ports import Ports
from hoststats.service import HostStatistics
from store import embedded
from store.migrate import migrate
from store.postgres import PostgresStore, open_store

APPS = 5  # rows per host
PROBES_PER_S = 50.0
AUTHENTICATOR_HASH = bytes(32)
IDLE_PROBE_S = 10.0
SILENT_FRACTION, NEWCOMER_FRACTION = 0.1, 0.01

HOSTS = """
INSERT INTO host (
    host_id, volunteer_id, host_cpid, created_at, last_rpc_at, ncpus, flop_per_s, ram_bytes, disk_free_bytes,
    on_fraction, active_fraction, gpu_active_fraction, platforms
)
SELECT
    n, 1, md5(n::text), $3,
    $3::double precision - CASE WHEN random() < $4::double precision THEN 8 ELSE 1 END * 86400.0,
    4, 1e9, 8e9, 1e11, 0.5 + 0.5 * random(), 1, 1, '{x86_64-pc-linux-gnu}'
FROM generate_series($1::int, $2::int) AS n
"""
# Version a is app a's for CPUs, version a + APPS its other one. Scores are normal, a third of the rows failed lately.
ROWS = """
INSERT INTO host_app_version (
    host_id, app_version_id, consecutive_valid, quota_per_day, stats_at, speed_n, speed_sum, speed_sum_sq, tight_n,
    tight_sum, tight_sum_sq, relaxed_n, relaxed_sum, relaxed_sum_sq, log_n, log_sum, log_sum_sq, n_valid, n_error, n_due
)
SELECT
    host_id, app + CASE WHEN (host_id + app) % 2 = 0 THEN 0 ELSE $5::int END,
    CASE WHEN random() < 0.33 THEN floor(random() * 11) ELSE 11 + floor(random() * 30) END, 50,
    $3::double precision - 86400 * random(), n, n * 1e-9 * exp(score), n * 1e-18 * exp(2 * score), n / 4, n / 4 * score,
    n / 4 * (score * score + 0.1), n, n * score, n * (score * score + 0.2), 30, 30 * (score + 8),
    30 * ((score + 8) ^ 2 + 0.2), 30, 1, 30
FROM (
    SELECT
        host_id, app, sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS score,
        CASE WHEN random() < $4::double precision THEN 1 ELSE 5 + 25 * random() END AS n
    FROM generate_series($1::int, $2::int) AS host_id
    CROSS JOIN generate_series(1, $5::int) AS app
    ORDER BY host_id, app
) AS drawn
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def prepare(dsn: str) -> None:
    """Apps, their versions and the one volunteer."""
    await migrate(dsn, now=SystemClock().now())
    store = await open_store(dsn)
    await store.applications.put_plan_class(PlanClass("cuda", gpu_type=NVIDIA))
    for plan_class in (PlanClass(""), PlanClass("cuda", gpu_type=NVIDIA)):
        for number in range(1, APPS + 1):
            if not plan_class.name:
                await store.applications.add_app(App(AppId(0), f"app{number}"))
            version = AppVersion(AppVersionId(0), AppId(number), "linux", 100, plan_class)
            await store.applications.add_app_version(version)
    await store.close()
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO volunteer (email, authenticator_nonce, authenticator_hash, created_at) "
        "VALUES ('a@example.org', '', decode(repeat('00', 32), 'hex'), 0)"
    )
    await connection.close()


async def fill(dsn: str, hosts_before: int, hosts: int) -> None:
    """Hosts `hosts_before` + 1 to `hosts` with their rows."""
    connection = await asyncpg.connect(dsn, timeout=60)
    now = SystemClock().now()
    step = 100_000
    for first in range(hosts_before + 1, hosts + 1, step):
        last = min(hosts, first + step - 1)
        await connection.execute(HOSTS, first, last, now, SILENT_FRACTION)
        await connection.execute(ROWS, first, last, now, NEWCOMER_FRACTION, APPS)
    await connection.execute("VACUUM (ANALYZE) host")
    await connection.execute("VACUUM (ANALYZE) host_app_version")
    await connection.execute("CHECKPOINT")
    await connection.close()


async def run_alone(dsn: str) -> dict[str, float]:
    """One run, in this process."""
    store = await open_store(dsn, min_size=1, max_size=2)
    service = HostStatistics(Ports(store.applications, store.hav_tables, store.generations), SystemClock())
    began = time.perf_counter()
    run = await service.run(report=lambda progress: say(f"  {time.perf_counter() - began:6.1f} s  {progress}"))
    seconds = time.perf_counter() - began
    await store.close()
    assert run is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cpu_s = time.process_time()
    return {"rows": run.rows, "ranked": run.ranked, "seconds": seconds, "python_cpu_s": cpu_s, "peak_bytes": peak}


async def run_in_child(dsn: str) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.percentiles", "--dsn", dsn, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    if child.returncode:
        raise SystemExit("the run failed")
    answer: dict[str, float] = json.loads(out.splitlines()[-1])
    return answer


async def probe(store: PostgresStore, hosts: int, latencies: list[float]) -> None:
    """Read and write what a scheduler request does, for one host after the other."""
    rng = np.random.default_rng(1)
    while True:
        key = RequestKey(AUTHENTICATOR_HASH, HostId(int(rng.integers(1, hosts + 1))), "", ())
        began = time.perf_counter()
        view = await store.ledger.read(key)
        assert view.host is not None
        await store.ledger.write(RequestWrites(view.host))
        latencies.append(time.perf_counter() - began)
        await asyncio.sleep(1 / PROBES_PER_S)


def p99_ms(latencies: list[float]) -> float:
    return round(1000 * float(np.quantile(latencies, 0.99)), 2) if latencies else 0.0


async def measured(dsn: str, hosts: int) -> dict[str, float]:
    """A run, with requests before it and meanwhile."""
    store = await open_store(dsn, min_size=1, max_size=4)
    idle, meanwhile = list[float](), list[float]()
    try:
        probing = asyncio.create_task(probe(store, hosts, idle))
        await asyncio.wait([probing], timeout=IDLE_PROBE_S)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        probing = asyncio.create_task(probe(store, hosts, meanwhile))
        answer = await run_in_child(dsn)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
    finally:
        await store.close()
    return answer | {"request_p99_ms_before": p99_ms(idle), "request_p99_ms": p99_ms(meanwhile)}


def reference_s() -> float:
    """A fixed operation of the same kind, timed in the same run: ten million numbers, sorted."""
    numbers = np.random.default_rng(2).random(10_000_000)
    began = time.perf_counter()
    np.argsort(numbers)
    return time.perf_counter() - began


async def measure(rows: int, folder: Path) -> dict[str, float]:
    dsn = await asyncio.to_thread(embedded.ensure_running, folder / "postgres")
    try:
        await prepare(dsn)
        answers = []
        before = 0
        for hosts in (rows // APPS // 10, rows // APPS):
            say(f"filling: {hosts * APPS} rows")
            await fill(dsn, before, hosts)
            before = hosts
            say(f"running over {hosts * APPS} rows")
            answers.append(await measured(dsn, hosts))
            say(json.dumps(answers[-1]))
    finally:
        embedded.release(folder / "postgres")
    small, large = answers
    growth = large["seconds"] / (large["rows"] / small["rows"] * small["seconds"])
    reference = reference_s()
    return {
        "rows": large["rows"],
        "ranked": large["ranked"],
        "seconds": round(large["seconds"], 2),
        "python_cpu_s": round(large["python_cpu_s"], 2),
        "peak_bytes": large["peak_bytes"],
        "growth": round(growth, 3),
        "seconds_of_a_tenth": round(small["seconds"], 2),
        "request_p99_ms_before": large["request_p99_ms_before"],
        "request_p99_ms": large["request_p99_ms"],
        "reference_s": round(reference, 3),
        "reference_ratio": round(large["seconds"] / reference, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of host_app_version")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the database is made; default: a temporary one"
    )
    parser.add_argument("--dsn", default=None, help=argparse.SUPPRESS)  # the child's part
    arguments = parser.parse_args()
    if arguments.dsn is not None:
        print(json.dumps(asyncio.run(run_alone(arguments.dsn))))
        return
    with tempfile.TemporaryDirectory(prefix="muster-percentiles-", dir=arguments.folder) as folder:
        answers = asyncio.run(measure(arguments.rows, Path(folder)))
    if arguments.json:
        print(json.dumps(answers))
        return
    for name, value in answers.items():
        print(f"{name:24} {value:14g}")


if __name__ == "__main__":
    main()
