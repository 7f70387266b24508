"""How long does every page of the console, and of volunteers, take with a million jobs in the database?

`python -m benchmarks.pages [--jobs 1000000] [--batches 300] [--hosts 2000] [--repeats 5] [--only why] [--json]`. An
embedded database as `muster init` makes it; one batch has all the jobs but ten for each of the others. Pages are
fetched one after the other from a running `muster up` by somebody signed in, volunteers' by one with OWN_HOSTS
computers that have sent OWN_RESULTS results. `worst_ms` is the slowest of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import asyncpg

from benchmarks.dispatch.processes import free_port, node
from benchmarks.running import in_folder, say
from benchmarks.submit import APP, COMMAND_LINE, JOB, make_app
from domain.access import Role
from domain.clock import Clock, SystemClock
from domain.settings import Settings
from operations.access.passwords import stretched
from operations.accounts import AccountKeys, add_volunteer
from operations.batches import Batches
from operations.database import database_dsn, open_database, release_database
from operations.install import install
from operations.project import Project
from transfer.download_folder import DownloadFolder
from transfer.keys import load_keys
from wire.attach import password_hash

NAME, PASSWORD = "grace", "a password for one benchmark"
SMALL = 10  # jobs of the other batches
OWN_HOSTS, OWN_RESULTS = 10, 20_000  # of the volunteer who looks
OWN = "ada@example.org"
LIMIT_MS = 200.0
HOSTS = """
    WITH owner AS (
        INSERT INTO volunteer (email, name, authenticator_nonce, authenticator_hash, created_at)
        SELECT 'v' || number || '@example.org', 'v', decode(md5(number::text), 'hex'),
               sha256(convert_to(number::text, 'UTF8')), $2
        FROM generate_series(1, $1) AS number RETURNING volunteer_id
    )
    INSERT INTO host (
        volunteer_id, host_cpid, created_at, last_rpc_at, rpc_interval_s, ncpus, flop_per_s, ram_bytes,
        disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms
    )
    SELECT volunteer_id, md5(volunteer_id::text), $2, $2, 3600, 4, 2e9, 8e9, 5e10, 0.9, 0.9, 0.9,
           ARRAY['x86_64-pc-linux-gnu']
    FROM owner
"""


# What the pages read of it is as if the volunteer's computers had done it, one in a hundred still under way.
OWN_WORK = """
    WITH own AS (
        INSERT INTO host (
            volunteer_id, host_cpid, created_at, last_rpc_at, rpc_interval_s, ncpus, flop_per_s, ram_bytes,
            disk_free_bytes, on_fraction, active_fraction, gpu_active_fraction, platforms
        )
        SELECT volunteer_id, md5('own' || number), $2, $2, 3600, 4, 2e9, 8e9, 5e10, 0.9, 0.9, 0.9,
               ARRAY['x86_64-pc-linux-gnu']
        FROM volunteer, generate_series(1, $1) AS number WHERE email = $5 RETURNING host_id, volunteer_id
    ), numbered AS (
        SELECT host_id, volunteer_id, row_number() OVER () - 1 AS number FROM own
    ), chosen AS (
        SELECT instance_id, row_number() OVER () AS number
        FROM (SELECT instance_id FROM instance WHERE batch_id = $3 ORDER BY instance_id DESC LIMIT $4) AS last_ones
    )
    UPDATE instance SET
        state = CASE chosen.number % 100 WHEN 0 THEN 'in_progress' WHEN 1 THEN 'failed' ELSE 'valid' END,
        host_id = numbered.host_id, volunteer_id = numbered.volunteer_id,
        app_version_id = (SELECT min(app_version_id) FROM app_version),
        sent_at = $2 - 10 * chosen.number, due_at = $2 + 86400, timeout_at = $2 + 90000, est_runtime_s = 3600,
        reported_at = CASE WHEN chosen.number % 100 > 0 THEN $2 END, elapsed_s = 3000
    FROM chosen JOIN numbered ON numbered.number = chosen.number % $1
    WHERE instance.instance_id = chosen.instance_id
    RETURNING instance.host_id
"""


async def load(project: Project, options: argparse.Namespace, clock: Clock) -> list[int]:
    """The jobs, the hosts and somebody to sign in; the ids of the large batch, a small one and a job."""
    await make_app(project, clock)
    async with open_database(project, clock) as store:
        folder = DownloadFolder(project.download_dir, max_bytes=Settings().files.max_input_bytes)
        batches = Batches(store, folder, clock)
        small = {"app": APP, "qos": "afap", "jobs": {**JOB, "count": SMALL, "command_line": COMMAND_LINE}}
        ids = [await batches.submit({**small, "name": f"small {n}"}, folder=None) for n in range(options.batches - 1)]
        say(f"{len(ids)} small batches are there")
        count = max(SMALL, options.jobs - SMALL * len(ids))
        large = {"app": APP, "qos": "throughput", "name": "large"}
        jobs = {**JOB, "count": count, "command_line": COMMAND_LINE}
        large_id = await batches.submit({**large, "jobs": jobs}, folder=None)
        say(f"and one of {count} jobs")
        [job] = await store.views.jobs(large_id, limit=1)
        await store.access.add_person(
            NAME,
            role=Role.OPERATOR,
            submitter_id=None,
            password=stretched(PASSWORD),
            one_time_until=None,
            now=clock.now(),
        )
        keys = AccountKeys(load_keys(project.keys_dir).account_secret)
        hashed = password_hash(PASSWORD, OWN)
        await add_volunteer(store.volunteers, keys, OWN, name="", password_hash=hashed, now=clock.now())
        return [large_id, ids[0] if ids else large_id, job.job_id]


async def add_hosts(dsn: str, hosts: int, large: int, now: float) -> int:
    """Hosts, and those of the volunteer who looks with what they did; the id of one of the latter."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(HOSTS, hosts, now)
        own = await connection.fetchval(OWN_WORK, OWN_HOSTS, now, large, OWN_RESULTS, OWN)
        await connection.execute("ANALYZE")
        return int(own)
    finally:
        await connection.close()


def own_pages(host: int) -> list[str]:
    """The address of every kind of page a volunteer has."""
    return [
        "/",
        "/volunteers/computers",
        f"/volunteers/computers/{host}",
        "/volunteers/results",
        "/volunteers/results?outcome=failed",
        f"/volunteers/results?computer={host}&outcome=waiting",  # of which there is none
        "/volunteers/preferences",
        "/volunteers/account",
        f"/volunteers/computers/{host}/why",
    ]


def pages(large: int, small: int, job: int) -> list[str]:
    """The address of every kind of page."""
    return [
        "/",
        "/batches",
        "/batches?sort=queue&state=active",
        "/batches?sort=deadline",
        "/batches?q=small+1&qos=afap",
        "/batches/new",
        f"/batches/{large}",
        f"/batches/{small}",
        f"/batches/{large}/jobs",
        f"/batches/{large}/jobs?state=waiting",
        f"/batches/{large}/jobs?state=failed",
        f"/batches/{large}/abort",
        f"/jobs/{job}",
        "/hosts",
        "/hosts?q=v7%40example.org",
        "/hosts/1",
        "/percentiles",
        "/percentiles/preview?deadline.p_tight=0.8",
        "/nobody",
        "/ordering",
        f"/ordering?batch={large}",
        "/ordering/preview?ordering.policy=fifo",
        "/simulate",
        "/settings",
        "/settings/deadline.p_tight",
        # the decision run dry for hosts that called last: each of them is asked
        "/hosts/1/why",
        f"/batches/{large}/why",
        f"/jobs/{job}/why",
    ]


async def timed(http: aiohttp.ClientSession, address: str, repeats: int, clock: Clock) -> dict[str, float]:
    """Median and worst of a page, in milliseconds, and its size; the first fetch is not counted."""
    took: list[float] = []
    size = 0
    for turn in range(repeats + 1):
        began_s = clock.monotonic()
        async with http.get(address) as response:
            size = len(await response.read())
            if response.status != 200 or "sign-in" in str(response.url):
                raise RuntimeError(f"{address}: status {response.status}, {response.url}")
        if turn:
            took.append(1000.0 * (clock.monotonic() - began_s))
    return {"median_ms": round(statistics.median(took), 1), "worst_ms": round(max(took), 1), "bytes": size}


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    port = free_port()
    settings: dict[str, object] = {"project.url": f"http://127.0.0.1:{port}/"}
    project = await install(folder / "project", None, settings, who="benchmark", clock=clock)
    ids = await load(project, options, clock)
    dsn = await database_dsn(project)
    async with AsyncExitStack() as stack:
        stack.callback(release_database, project)
        own = await add_hosts(dsn, options.hosts, ids[0], clock.now())
        running = node(project, port=port, workers=1, log_path=project.data_dir / "node.log", clock=clock)
        await stack.enter_async_context(running)
        jar = aiohttp.CookieJar(unsafe=True)
        http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
        base = f"http://127.0.0.1:{port}/console"
        async with http.post(f"{base}/sign-in", data={"name": NAME, "password": PASSWORD}) as response:
            response.raise_for_status()
        root = f"http://127.0.0.1:{port}"
        async with http.post(f"{root}/volunteers/sign-in", data={"email": OWN, "password": PASSWORD}) as response:
            response.raise_for_status()
        await clock.sleep(options.settle_s)
        found = {}
        asked = [(root, address) for address in own_pages(own)] + [(base, address) for address in pages(*ids)]
        for where, address in [one for one in asked if options.only in one[1]]:
            name = "front page" if (where, address) == (root, "/") else address
            found[name] = await timed(http, where + address, options.repeats, clock)
            say(f"  {found[name]['median_ms']:7.1f} ms  {name}")
    slow = {address: one["median_ms"] for address, one in found.items() if one["median_ms"] >= LIMIT_MS}
    return {
        "jobs": options.jobs,
        "batches": options.batches,
        "hosts": options.hosts,
        "worst_ms": max(one["median_ms"] for one in found.values()),
        "over_200_ms": slow,
        "pages": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--settle-s", type=float, default=20.0, help="seconds the node runs before it is asked")
    parser.add_argument("--only", default="", help="pages that have this in their address")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = in_folder(lambda folder: measure(options, folder, SystemClock()))
    if options.json:
        print(json.dumps(figures))
    else:
        say(f"the slowest page took {figures['worst_ms']} ms")


if __name__ == "__main__":
    main()
