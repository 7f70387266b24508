"""Measures every console page, volunteer page and API route on a large project.

    python -m benchmarks.pages [--jobs 1000000] [--batches 300] [--hosts 20000] [--repeats 5] [--only why] [--json]

`muster init` creates the embedded database. One batch has all jobs except ten for each other batch. The hosts have rows
for six apps, ranked by `muster hoststats run`, and results. A signed-in user fetches pages one after the other from a
running `muster up`; volunteers' pages are fetched by one with OWN_HOSTS hosts that have sent OWN_RESULTS results. If a
route has no address, the benchmark does not start. `worst_ms` is the slowest of the medians. `cpu_ms` is a page's CPU
time in the worker and the database, minus their idle use; other load on the machine affects it less than wall-clock
time. `machine_load` is the load average before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import aiohttp
from aiohttp import web

from administration.project import Project
from benchmarks.dispatch.processes import Node, free_port, node
from benchmarks.pages.addresses import CONSOLE, NAME, SITE, Scene, addresses, check_all_asked
from benchmarks.pages.scene import OWN, PASSWORD, load
from benchmarks.running import in_folder, parser_of, say
from domain.clock import Clock, SystemClock
from runtime.compose import build_worker
from runtime.project import database_dsn, install, release_database

LIMIT_MS = 200.0
IDLE_S = 10.0  # period without requests, to measure idle use
SIGN_IN = "/sign-in"
ANYBODYS = Scene(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "app", "v@example.org")  # to check that every route has an address


async def check_routes(project: Project, clock: Clock) -> None:
    """Raise BenchmarkError, naming the worker's routes for which there is no address."""
    dsn = await database_dsn(project)
    async with build_worker(replace(project, database_url=dsn), clock) as parts:
        check_all_asked(served(parts.application), addresses(ANYBODYS))


def served(application: web.Application) -> list[str]:
    """Return the paths that a user may GET, like `/console/hosts/{id}`."""
    return [
        route.resource.canonical
        for route in application.router.routes()
        if route.method == "GET" and route.resource is not None
    ]


@dataclass(slots=True)
class Cpu:
    """CPU seconds of the worker and the database. `idle_share` is CPU seconds per second without requests."""

    measured: Node
    clock: Clock
    idle_share: float = 0.0

    def used_s(self) -> float:
        return self.measured.workers_cpu_s() + self.measured.postgres_cpu_s()

    async def rest(self, seconds: float) -> None:
        """Wait, and record the idle use."""
        before_s, began_s = self.used_s(), self.clock.monotonic()
        await self.clock.sleep(seconds)
        self.idle_share = (self.used_s() - before_s) / (self.clock.monotonic() - began_s)


async def timed(http: aiohttp.ClientSession, url: str, repeats: int, cpu: Cpu, clock: Clock) -> dict[str, float]:
    """Return a page's median and worst time and CPU in milliseconds, and its size. The first fetch does not count."""
    took: list[float] = []
    size = 0
    cpu_s = 0.0
    for turn in range(repeats + 1):
        began_s = clock.monotonic()
        async with http.get(url) as response:
            size = len(await response.read())
            if response.status != 200 or str(response.url).split("?")[0].endswith(SIGN_IN) != url.endswith(SIGN_IN):
                raise RuntimeError(f"{url}: status {response.status}, {response.url}")
        if turn:
            took.append(clock.monotonic() - began_s)
        else:
            cpu_s = cpu.used_s()
    cpu_s = cpu.used_s() - cpu_s - cpu.idle_share * sum(took)
    return {
        "median_ms": round(1000.0 * statistics.median(took), 1),
        "worst_ms": round(1000.0 * max(took), 1),
        "cpu_ms": round(1000.0 * max(0.0, cpu_s) / repeats, 1),
        "bytes": size,
    }


async def prepared(options: argparse.Namespace, folder: Path, port: int, clock: Clock) -> tuple[Project, Scene]:
    """Return the project and its contents, which are created unless the directory has them from the last run."""
    settings: dict[str, object] = {"project.url": f"http://127.0.0.1:{port}/"}
    project = await install(folder / "project", None, settings, who="benchmark", clock=clock)
    await check_routes(project, clock)
    known = folder / "scene.json"
    if not known.exists():
        scene = await load(project, options, clock)
        known.write_text(json.dumps(asdict(scene)))
    return project, Scene(**json.loads(known.read_text()))


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    port = free_port()
    project, scene = await prepared(options, folder, port, clock)
    async with AsyncExitStack() as stack:
        stack.callback(release_database, project)
        running = node(project, port=port, workers=1, log_path=project.data_dir / "node.log", clock=clock)
        measured = await stack.enter_async_context(running)
        any_user = await stack.enter_async_context(aiohttp.ClientSession())
        known = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
        root = f"http://127.0.0.1:{port}"
        people = ((CONSOLE, {"name": NAME}), (SITE, {"email": OWN}))
        for place, who in people:
            async with known.post(root + place + SIGN_IN, data={**who, "password": PASSWORD}) as response:
                response.raise_for_status()
        cpu = Cpu(measured, clock)
        for seconds in (options.settle_s, IDLE_S):  # start-up uses more CPU time
            await cpu.rest(seconds)
        before = os.getloadavg()[0]
        found = {}
        for address in (one for one in addresses(scene) if options.only in one):
            http = any_user if address.endswith(SIGN_IN) else known
            found[address] = await timed(http, root + address, options.repeats, cpu, clock)
            one = found[address]
            say(f"  {one['median_ms']:7.1f} ms, {one['cpu_ms']:6.1f} of CPU  {address}")
    slow = {address: one["median_ms"] for address, one in found.items() if one["median_ms"] >= LIMIT_MS}
    return {
        "jobs": options.jobs,
        "batches": options.batches,
        "hosts": options.hosts,
        "worst_ms": max(one["median_ms"] for one in found.values()),
        "over_200_ms": slow,
        "machine_load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "pages": found,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--settle-s", type=float, default=20.0, help="seconds the node runs before the first request")
    parser.add_argument("--only", default="", help="only addresses that contain this")
    options = parser.parse_args()
    figures = in_folder(lambda folder: measure(options, folder, SystemClock()), options.folder)
    if options.json:
        print(json.dumps(figures))
    else:
        say(f"the slowest page took {figures['worst_ms']} ms")


if __name__ == "__main__":
    main()
