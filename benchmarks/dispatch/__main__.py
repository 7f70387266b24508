"""Measures how many durable dispatches per second a node serves, compared with the same server without work.

`python -m benchmarks.dispatch --workers 2 --seconds 10 --jobs-per-request 1 --json`. It runs a project of 20,000 hosts
on an embedded database in a temporary directory, `muster up` with real worker processes, and a load generator in a
separate process. Every request opens a connection, as stock clients do (unless `--keep-alive`), reports the jobs that
its host received before, and requests as many again. Each repeat loads first the echo server, then the node, with 1, 16
and 64 concurrent clients (`--clients`); with 64, also the echo server with 96. With `--front`, the node is behind
HAProxy in the shipped configuration; the echo server is not.
"""

from __future__ import annotations

import argparse
import json
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path

import asyncpg
import psutil

from administration.project import Project
from benchmarks.dispatch.check import check, refill_s, troubles
from benchmarks.dispatch.figures import Repeat, summary, table
from benchmarks.dispatch.front import Front, front
from benchmarks.dispatch.processes import echo, free_port, generator, node
from benchmarks.dispatch.runs import CLIENTS, WARM_UP_S, Runs
from benchmarks.dispatch.world import World, install_project
from benchmarks.running import parser_of, run_and_tell, say
from domain.clock import Clock
from runtime.project import database_dsn, open_database, release_database
from transfer.keys import load_keys
from wire.signing import public_key_text

CAPTURE = Path(__file__).parents[2] / "tests" / "captures" / "12-report-success.request.xml"
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
ROUNDS_PER_REPEAT = 2  # void repeats are run again, up to this many rounds per repeat


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Run the whole benchmark in an empty directory and return its figures."""
    port = free_port()
    project = await install_project(
        folder, url=f"http://127.0.0.1:{port}/", slots=options.slots, clock=clock, new_hosts=options.new_hosts
    )
    dsn = await database_dsn(project)
    try:
        async with open_database(project, clock) as store:
            connection = await asyncpg.connect(dsn, statement_cache_size=20)
            try:
                world = World(store, connection, clock, jobs=options.jobs_per_request, new_hosts=options.new_hosts)
                loaded = await _fill(world, project, connection, options, clock)
                return {**await _run(options, project, world, connection, port, folder, clock), **loaded}
            finally:
                await connection.close()
    finally:
        release_database(project)


async def _fill(
    world: World, project: Project, connection: asyncpg.Connection, options: argparse.Namespace, clock: Clock
) -> dict[str, object]:
    """Create the world. Return the time this took, and its size."""
    say(f"filling a project with {options.waiting_jobs:,} waiting jobs …")
    began_s = clock.monotonic()
    await world.fill(project, options.waiting_jobs)
    load_s = clock.monotonic() - began_s
    nbytes = await connection.fetchval("SELECT pg_database_size(current_database())")
    say(f"  {load_s:.1f} s, {nbytes / 2**20:,.0f} MiB")
    settings = {name: await connection.fetchval("SELECT current_setting($1)", name) for name in DURABILITY}
    return {"load_s": round(load_s, 1), "database_mib": round(nbytes / 2**20), "durability": settings}


async def _run(
    options: argparse.Namespace,
    project: Project,
    world: World,
    connection: asyncpg.Connection,
    port: int,
    folder: Path,
    clock: Clock,
) -> dict[str, object]:
    since = clock.now()
    log_path, told_path = folder / "node.log", folder / "told.npy"
    async with AsyncExitStack() as stack:
        world_path = await described(world, project, options.jobs_per_request, port, folder)
        load = await stack.enter_async_context(generator(world_path))
        own = free_port(options.workers) if options.front else None
        up = await stack.enter_async_context(
            node(project, port=port, workers=options.workers, log_path=log_path, clock=clock, worker_port=own)
        )
        if own is not None:
            haproxy, is_tls = Front(folder / "front"), options.front == "tls"
            ports = range(own, own + options.workers)
            process = psutil.Process(stack.enter_context(front(haproxy, workers=ports, nodes=[port])).pid)
            entrance = haproxy.tls_port if is_tls else haproxy.http_port
            certificate = str(haproxy.certificate) if is_tls else ""
            up = replace(up, port=entrance, front=process, certificate=certificate)
        runs = {
            clients: Runs(up, load, world, connection, options, clock, clients=clients, keep_alive=options.keep_alive)
            for clients in options.clients
        }
        most = runs[max(options.clients)]
        warm_up = await most.dispatch(min(WARM_UP_S, options.seconds))
        say(f"  warm-up: {warm_up['requests_per_s']:,.0f} requests/s")
        echo_port = free_port()
        reply = str(warm_up["median_reply"])
        echoes = await stack.enter_async_context(
            echo(port=echo_port, workers=options.workers, reply=reply, folder=folder, clock=clock)
        )
        await most.echo(echoes.port, min(WARM_UP_S, options.seconds))
        repeats: dict[int, list[Repeat]] = {clients: [] for clients in runs}
        for clients in list(runs) * (ROUNDS_PER_REPEAT * options.repeats):
            if sum(not repeat.void_because for repeat in repeats[clients]) == options.repeats:
                continue
            repeat = await runs[clients].repeat(echoes)
            repeats[clients].append(repeat)
            why = repeat.void_because
            say(
                f"  {clients} clients: echo {repeat.echo_requests_per_s:,.0f}/s,"
                f" dispatch {repeat.requests_per_s:,.0f}/s"
                f" ({repeat.ratio_to_echo:.3f}), p99 {repeat.p99_ms:.1f} ms"
                f"{f', {repeat.failed:.0f} requests failed' if repeat.failed else ''}{', void: ' if why else ''}{why}"
            )
        await load.ask(save=str(told_path))
    say("comparing every reply with the database …")
    checked = await check(told_path, connection, since=since)
    return {
        **summary(repeats[max(runs)]),
        "by_clients": {str(clients): summary(done) for clients, done in repeats.items()},
        **asdict(checked),
        "slots": options.slots,
        "waiting_jobs": options.waiting_jobs,
        "load": options.load,
        "workers": options.workers,
        "jobs_per_request": options.jobs_per_request,
        "connections": max(runs),
        "keep_alive": options.keep_alive,
        "front": options.front or "none",
        "new_hosts": options.new_hosts,
        "void_check": "echo with 50 % more clients, in every repeat of 64 clients",
        "refill_s": refill_s(log_path),
        "troubles": troubles(log_path),
    }


async def described(world: World, project: Project, jobs: int, port: int, folder: Path) -> Path:
    """Write the load generator's input to a file."""
    path = folder / "world.json"
    description = {
        "capture": str(CAPTURE),
        "jobs": jobs,
        "code_sign_key": public_key_text(load_keys(project.keys_dir).public_key),
        "address": f"127.0.0.1:{port}",
        "held": list((await world.held()).items()),
    }
    path.write_text(json.dumps(description), encoding="utf-8")
    return path


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(map(int, text.split(",")))
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"expected whole numbers from 1 on, got {text}")
    return counts


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--workers", type=int, default=2, help="request workers of the node, and of the echo")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of each phase of load")
    parser.add_argument("--jobs-per-request", type=int, default=1)
    parser.add_argument("--slots", type=int, default=1000, help="of each worker's job array")
    parser.add_argument("--waiting-jobs", type=int, default=400_000, help="the backlog, kept filled")
    parser.add_argument("--load", type=float, default=1.0, help="share of the full rate; 1 = no limit")
    parser.add_argument(
        "--clients", type=_counts, default=CLIENTS, metavar="N,...", help="clients at the same time; default 1,16,64"
    )
    parser.add_argument("--keep-alive", action="store_true", help="one connection per client, not per request")
    parser.add_argument(
        "--front", choices=("http", "tls"), nargs="?", const="http", default=None, help="behind HAProxy; default http"
    )
    parser.add_argument("--new-hosts", action="store_true", help="hosts without a record, which use shared quotas")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not 0.0 < options.load <= 1.0:
        parser.error(f"--load: expected more than 0 and at most 1, got {options.load}")
    return options


def main() -> None:
    run_and_tell(parsed(), measure, table)


if __name__ == "__main__":
    main()
