"""Measures a refill of the job array from backlogs of ten thousand and of millions of waiting jobs.

`python -m benchmarks.refill [--waiting-jobs 10000 --waiting-jobs 1000000] [--slots 1000 --slots 10000] --json`. For
each backlog it creates a project on an embedded database in a temporary directory, as `benchmarks.dispatch` does, with
the feeder of one of two workers. `full` starts from an empty array. `steady` is the partial refill after `--sent` of
its slots were sent, `round` the periodic full refill after as many were sent. `after_sends_full` starts from an empty
array after a tenth of the backlog (at most `--many-sent`) was sent without vacuum. `--batches 10000` instead measures
the time to find the waiting batches among this many active batches.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import asyncpg

from benchmarks.dispatch.figures import table
from benchmarks.dispatch.world import World, install_project
from benchmarks.refill.batches import measure_batches
from benchmarks.refill.figures import Figures, medians, named, ratios
from benchmarks.refill.steps import Steps
from benchmarks.running import parser_of, reference_us, run_and_tell, say
from domain.clock import Clock
from runtime.project import database_dsn, release_database
from store.postgres import open_store

BACKLOGS = (10_000, 1_000_000)
LARGEST = 10_000_000
SLOTS = (1_000, 10_000)
WAITING_PER_SLOT = 10  # minimum, because half of the jobs belong to another worker


async def measured(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Run the requested measurement."""
    if options.batches is not None:
        return await measure_batches(options.batches, folder, clock, repeats=options.repeats)
    return await measure(options, folder, clock)


async def measure(options: argparse.Namespace, folder: Path, clock: Clock) -> dict[str, object]:
    """Measure all backlogs one after the other, and compute the ratios of each to the smallest."""
    figures: dict[str, object] = {"repeats": options.repeats, "sent": options.sent}
    by_backlog: dict[int, dict[int, Figures]] = {}
    for waiting_jobs in sorted(options.waiting_jobs):
        by_backlog[waiting_jobs] = await _of_backlog(waiting_jobs, options, folder / str(waiting_jobs), clock)
        for slots, found in by_backlog[waiting_jobs].items():
            figures |= {f"{key}_{named(slots)}_slots_{named(waiting_jobs)}": value for key, value in found.items()}
    figures |= ratios(by_backlog)
    figures["reference_us"] = round(reference_us(), 1)
    return figures


async def _of_backlog(waiting_jobs: int, options: argparse.Namespace, folder: Path, clock: Clock) -> dict[int, Figures]:
    """Create a project with this backlog, and return the figures for each number of slots."""
    project = await install_project(folder, url="http://127.0.0.1:9/", slots=1000, clock=clock)
    dsn = await database_dsn(project)
    try:
        store = await open_store(dsn, clock=clock, min_size=1, max_size=1)  # one server process, to read its CPU time
        connection = await asyncpg.connect(dsn, statement_cache_size=20)
        try:
            say(f"filling a project with {waiting_jobs:,} waiting jobs …")
            began_s = clock.monotonic()
            await World(store, connection, clock, jobs=1).fill(project, waiting_jobs)
            load_s = clock.monotonic() - began_s
            nbytes = await connection.fetchval("SELECT pg_database_size(current_database())")
            say(f"  {load_s:.1f} s, {nbytes / 2**20:,.0f} MiB")
            await connection.execute("ALTER TABLE instance SET (autovacuum_enabled = false)")
            steps = await Steps.of(store, connection, clock)
            found = await _measured(steps, waiting_jobs, options)
            for figures in found.values():
                figures |= {"load_s": round(load_s, 1), "database_mib": float(round(nbytes / 2**20))}
            return found
        finally:
            await connection.close()
            await store.close()
    finally:
        release_database(project)


async def _measured(steps: Steps, waiting_jobs: int, options: argparse.Namespace) -> dict[int, Figures]:
    """Return the medians for each number of slots for which the backlog is large enough. Sent jobs stay sent."""
    found: dict[int, Figures] = {}
    sizes = sorted(slots for slots in options.slots if WAITING_PER_SLOT * slots <= waiting_jobs)
    for slots in sizes:
        full = [await steps.full(slots) for _ in range(options.repeats)]
        say(f"  {slots:,} slots: full {medians('full', full)['full_s'] * 1000:.1f} ms")
        found[slots] = medians("full", full)
    for slots in sizes:
        for name, whole in (("steady", False), ("round", True)):
            timed = await steps.after_sending(slots, sent=options.sent, repeats=options.repeats, whole=whole)
            found[slots] |= medians(name, timed)
            say(f"  {slots:,} slots: {options.sent} sent, {name} {found[slots][f'{name}_s'] * 1000:.1f} ms")
    many = min(waiting_jobs // 10, options.many_sent)
    await steps.send_many(many)
    for slots in sizes:
        full = [await steps.full(slots) for _ in range(options.repeats)]
        found[slots] |= medians("after_sends_full", full)
        say(f"  {slots:,} slots: {many:,} sent, full {found[slots]['after_sends_full_s'] * 1000:.1f} ms")
    return found


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--waiting-jobs", type=int, action="append", help="a backlog; may be repeated")
    parser.add_argument(
        "--largest", action="store_true", help=f"a backlog of {LARGEST:,} too: takes minutes and 8 GiB of disk"
    )
    parser.add_argument("--slots", type=int, action="append", help="slots of the job array; may be repeated")
    parser.add_argument("--sent", type=int, default=250, help="slots sent before each steady refill")
    parser.add_argument(
        "--many-sent", type=int, default=50_000, help="jobs sent, without a vacuum, before the last step"
    )
    parser.add_argument(
        "--batches", type=int, default=None, help="only measure finding the waiting ones among this many batches"
    )
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    options.waiting_jobs = (options.waiting_jobs or list(BACKLOGS)) + [LARGEST] * options.largest
    options.slots = options.slots or list(SLOTS)
    return options


def main() -> None:
    run_and_tell(parsed(), measured, table)


if __name__ == "__main__":
    main()
