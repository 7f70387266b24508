"""Measures the CPU time that one ordering takes in the background process and in PostgreSQL.

The project has batches of ten jobs on an embedded database. The periodic task `ordering` runs as in the background
process, by policy: `all`, every batch moves and is explained (first ordering after a change of policy); `sent`, a
minute later, after an instance of every hundredth batch was sent; `quiet`, a minute after that, without changes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import asyncpg
import psutil

from benchmarks.dispatch.world import APP, install_project
from benchmarks.ordering.policies import SETTINGS
from benchmarks.statements import statements
from domain.apps import App
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.units import AppId, Instant, Seconds, later
from jobs.ordering.ordering_pass import Orderer
from runtime.project import database_dsn, release_database
from store.postgres import PostgresStore, open_store

SQL = statements("ordering")
ACCOUNTS = 12
SENT_EVERY = 100
PERIOD_S = 60.0
REPEATS = 3
POLICIES = ("multifactor", "components", "equal_access", "logical_time")


class Turned:
    """A clock that can be advanced manually. Seconds pass normally."""

    def __init__(self, now: Instant) -> None:
        self.at = now

    def now(self) -> Instant:
        return self.at

    def monotonic(self) -> Seconds:
        return Seconds(time.monotonic())

    async def sleep(self, duration_s: float) -> None:
        self.at = later(self.at, duration_s)


async def measure_service(batches: int, submitters: int, folder: Path, clock: Clock) -> dict[str, object]:
    """Return the CPU milliseconds for each kind of ordering: `_ms` for the background process, `_database_ms` for
    PostgreSQL.
    """
    project = await install_project(folder, url="http://127.0.0.1:9/", slots=1000, clock=clock)
    dsn = await database_dsn(project)
    try:
        turned = Turned(clock.now())
        store = await open_store(dsn, clock=turned, min_size=1, max_size=1)  # one server process, to read its CPU time
        connection = await asyncpg.connect(dsn)
        try:
            await _fill(store, connection, batches, submitters, turned.now())
            pid = await connection.fetchval(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'muster' AND datname = current_database()"
            )
            duty = _Duty(store, connection, turned, psutil.Process(pid))
            return {name: await duty.measured(name) for name in POLICIES}
        finally:
            await connection.close()
            await store.close()
    finally:
        release_database(project)


async def _fill(
    store: PostgresStore, connection: asyncpg.Connection, batches: int, submitters: int, now: Instant
) -> None:
    app = await store.applications.add_app(App(AppId(0), APP, "Test application"))
    for number in range(ACCOUNTS):
        await store.people.add_account(f"a{number}", parent=None, shares=1.0 + number % 5)
    accounts = [one.account_id for one in await store.people.accounts()]
    await connection.execute(SQL["submitters"], submitters, accounts, now, timeout=600.0)
    await connection.execute(SQL["waiting"], app.app_id, batches, now, timeout=600.0)
    await connection.execute("VACUUM (ANALYZE)", timeout=600.0)


class _Duty:
    """Runs orderings one after the other, with dispatches in between."""

    def __init__(
        self, store: PostgresStore, connection: asyncpg.Connection, clock: Turned, server: psutil.Process
    ) -> None:
        self._store = store
        self._connection = connection
        self._clock = clock
        self._server = server
        self._catalogue = Catalogue()
        self._orderer = Orderer(store.ordering, lambda: self._catalogue, clock)

    async def measured(self, policy: str) -> Mapping[str, object]:
        print(f"{policy} in service ...", file=sys.stderr)
        changes = {"ordering.policy": policy} | {f"ordering.{key}": value for key, value in SETTINGS.items()}
        found = await self._round(changes)
        for _ in range(REPEATS - 1):
            await self._round({"ordering.policy": "fifo"})
            for key, values in (await self._round(changes)).items():
                found[key] += values
        return {key: round(median(values), 1) for key, values in found.items()}

    async def _round(self, changes: Mapping[str, object]) -> dict[str, list[float]]:
        await self._store.settings.set_settings(changes, now=self._clock.now(), who="benchmark", why="")
        figures = await self._ordering("all")
        await self._connection.execute(SQL["send"], SENT_EVERY)
        figures |= await self._ordering("sent")
        return figures | await self._ordering("quiet")

    async def _ordering(self, name: str) -> dict[str, list[float]]:
        await self._clock.sleep(PERIOD_S)
        self._catalogue = await self._store.applications.load_catalogue()
        server_s, own_s = self._server_s(), time.process_time()
        report = await self._orderer.run_once()
        own_ms, server_ms = 1000.0 * (time.process_time() - own_s), 1000.0 * (self._server_s() - server_s)
        written: dict[str, float] = {f"{name}_moved": report.moved, f"{name}_explained": report.explained}
        took = {f"{name}_ms": own_ms, f"{name}_database_ms": server_ms}
        return {key: [float(value)] for key, value in (took | written).items()}

    def _server_s(self) -> float:
        spent = self._server.cpu_times()
        return float(spent.user + spent.system)
