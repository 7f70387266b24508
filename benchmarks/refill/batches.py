"""Measures finding the waiting batches among ten thousand active ones.

It measures four situations in sequence: every batch has unsent work; only the last 10 % in the order have; 1 % has just
been sent; every batch has moved in the order.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import asyncpg

from benchmarks.dispatch.world import APP, install_project
from benchmarks.refill.figures import named
from benchmarks.refill.steps import HALF, FixedCatalogue, Owned
from benchmarks.statements import statements
from domain.apps import App
from domain.clock import Clock
from domain.units import AppId
from feeder.service import build_feeder
from runtime.project import database_dsn, release_database
from store.postgres import PostgresStore, open_store

LIMITS = (64, 500)  # batches per query; a refill uses the second limit
SQL = statements("refill")
SLOTS = 1000


async def measure_batches(batches: int, folder: Path, clock: Clock, *, repeats: int) -> dict[str, object]:
    """Return each query's milliseconds: the first in a situation, and the median of the `repeats` after it."""
    project = await install_project(folder, url="http://127.0.0.1:9/", slots=SLOTS, clock=clock)
    dsn = await database_dsn(project)
    try:
        store = await open_store(dsn, clock=clock, min_size=1, max_size=2)
        connection = await asyncpg.connect(dsn)
        try:
            await _fill(store, connection, batches, clock)
            figures: dict[str, object] = {"batches": batches, "repeats": repeats}
            for name, change in (
                ("all", ""),
                ("tenth", "drain_batches"),
                ("just_sent", "drain_batches"),
                ("reordered", "reorder_batches"),
            ):
                drained = {"tenth": batches - batches // 10, "just_sent": batches // 100}.get(name)
                if change:
                    await connection.execute(SQL[change], *([drained] if drained else []), timeout=600.0)
                figures |= await _looks(name, store, repeats)
                figures[f"{name}_refill_ms"] = await _refill_ms(store, clock, repeats)
            return figures
        finally:
            await connection.close()
            await store.close()
    finally:
        release_database(project)


async def _fill(store: PostgresStore, connection: asyncpg.Connection, batches: int, clock: Clock) -> None:
    app = await store.applications.add_app(App(AppId(0), APP, "Test application"))
    await connection.execute(SQL["many_batches"], app.app_id, batches, clock.now(), timeout=600.0)
    await connection.execute("VACUUM (ANALYZE)", timeout=600.0)


async def _looks(name: str, store: PostgresStore, repeats: int) -> dict[str, object]:
    figures: dict[str, object] = {}
    for limit in LIMITS:
        first, _ = await _look(store, limit)
        looks = [await _look(store, limit) for _ in range(repeats)]
        figures |= {
            f"{name}_first_{named(limit)}_ms": first,
            f"{name}_{named(limit)}_ms": round(median(took_ms for took_ms, _ in looks), 2),
            f"{name}_{named(limit)}_found": looks[0][1],
        }
    return figures


async def _look(store: PostgresStore, limit: int) -> tuple[float, int]:
    began_s = time.perf_counter()
    found = await store.waiting.ready_batches(limit)
    return round(1000 * (time.perf_counter() - began_s), 2), len(found)


async def _refill_ms(store: PostgresStore, clock: Clock, repeats: int) -> float:
    """Return the time of a full refill of an array that is already full."""
    catalogue = FixedCatalogue(await store.applications.load_catalogue()).with_slots(SLOTS)
    feeder = build_feeder(store.waiting, Owned(HALF), catalogue, clock)
    await feeder.refill_once()
    return round(1000 * median([(await feeder.refill_once()).took_s for _ in range(repeats)]), 2)
