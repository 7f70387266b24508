"""Reads and publishes host statistics: transfers whole tables by binary COPY, then switches one pointer.

A pass over the table costs the same for one app as for many, so apps are read together, up to a number of rows that
bounds the memory. Host data are read once and looked up for each row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import asyncpg
import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from domain.apps import AppVersion
from domain.errors import UnavailableError
from domain.progress import note_progress
from domain.ranking import (
    HAV_FIELDS,
    PERCENTILE_FIELDS,
    AppFacts,
    CutPoints,
    HostStatisticsRun,
    RankedPart,
    Since,
    StoredPercentile,
)
from domain.units import AppId, AppVersionId, HostId, Instant
from store.binary_copy import HEADER, TRAILER, Fields, GrowingTable, RowReader, Table, TableReader, encoded
from store.locks import DEAD_S, connect_watched, kept_heard
from store.pool import CLOSE_S, LOST, Connection, Database, OnDatabase, connect_patiently, lost_means_unavailable
from store.queries import load
from store.rows import encoded as as_json
from store.rows import mapper, values_of

RUN_LOCK = "a run of the host statistics"
RUNS_KEPT = 1000
COPY_TIMEOUT_S = 6 * 3600.0
MOST_S = 60.0  # time limit of a COPY, unless it may read everything
REMOVE_TIMEOUT_S = 60.0  # dropping a table of some GB takes seconds
GENERATION_FIELDS = (("generation", "i4"), *PERCENTILE_FIELDS)

log = structlog.get_logger("store")


@asynccontextmanager
async def bulk_connection(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a separate connection for reading and writing whole tables. Raises UnavailableError."""
    connection = await connect_patiently(dsn)
    try:
        with lost_means_unavailable():
            await connection.execute(load("bulk_session"))
            yield connection
    except BaseException:
        connection.terminate()  # an interrupted COPY ends now, not after the server has sent everything
        raise
    await connection.close()


async def copied(
    connection: Connection, fields: Fields, query: str, *arguments: object, timeout_s: float = MOST_S
) -> Table:
    """Return a query's result, read by binary COPY, as records with the given fields. Raises UnavailableError."""
    reader = TableReader(fields)
    with lost_means_unavailable():
        await copy_out(connection, reader.feed, query, *arguments, timeout_s=timeout_s)
    return reader.table()


async def copy_out(
    connection: Connection, feed: Callable[[bytes], None], query: str, *arguments: object, timeout_s: float
) -> None:
    """Pass a query's result to `feed` piece by piece, by binary COPY."""

    async def take(data: bytes) -> None:
        feed(data)
        note_progress()

    await connection.copy_from_query(load(query), *arguments, output=take, format="binary", timeout=timeout_s)


class PostgresNewGeneration:
    """A new generation of percentiles. One connection writes its tables; the lock's connection switches the pointer.

    So a run that lost its lock, and may have been overtaken by another run, cannot switch the pointer.
    """

    def __init__(
        self,
        number: int,
        writer: asyncpg.Connection[asyncpg.Record],
        lock: asyncpg.Connection[asyncpg.Record],
        turn: asyncio.Lock,
        *,
        full: bool,
    ) -> None:
        self.number = number
        self._writer = writer
        self._lock = lock
        self._turn = turn  # serialises commands on the lock's connection
        self._full = full

    async def write(self, percentiles: Table) -> None:
        with lost_means_unavailable():
            await self._writer.copy_to_table(
                f"host_percentile_{self.number}",
                source=self._rows(percentiles),
                columns=[name for name, _ in GENERATION_FIELDS],
                format="binary",
                timeout=COPY_TIMEOUT_S,
            )

    async def _rows(self, percentiles: Table) -> AsyncIterator[bytes]:
        yield HEADER
        unknown = np.isnan(percentiles["x"])
        for chosen, nulls in ((~unknown, frozenset[str]()), (unknown, frozenset(("x", "y")))):
            table = percentiles.take(np.flatnonzero(chosen))
            for block in encoded(table, GENERATION_FIELDS, nulls=nulls, fixed={"generation": self.number}):
                note_progress()
                yield block
        yield TRAILER

    async def publish(self, cuts: Sequence[CutPoints], run: HostStatisticsRun) -> None:
        with lost_means_unavailable():
            if self._full:
                await self._writer.execute(load("attach_percentile_table"), self.number, timeout=COPY_TIMEOUT_S)
            await self._writer.executemany(
                load("insert_cut_points"), [(self.number, *_cut_values(cut)) for cut in cuts]
            )
            async with self._turn:
                switched = await self._lock.fetchval(
                    load("switch_generation"), self.number, run.full, run.started_at, run.seconds, as_json(run.parts)
                )
        if switched is None:
            raise UnavailableError("another run of the host statistics intervened: nothing was published")


class PostgresGenerations(OnDatabase):
    """Implements hoststats' Generations."""

    @asynccontextmanager
    async def new(self, *, now: Instant, full: bool) -> AsyncIterator[PostgresNewGeneration | None]:
        lock, turn = await connect_watched(self._database.dsn, silence_s=DEAD_S), asyncio.Lock()

        async def be_heard() -> None:
            async with turn:
                with lost_means_unavailable():
                    await lock.fetchval(load("connection_alive"))

        try:
            with lost_means_unavailable():
                mine = await lock.fetchval(load("try_duty_lock"), RUN_LOCK)
            if not mine:
                yield None
            else:
                async with kept_heard(be_heard), bulk_connection(self._database.dsn) as writer:
                    yield await self._begin(writer, lock, turn, now, full=full)
        except BaseException:
            lock.terminate()  # close immediately; the server releases the lock when it notices
            raise
        with suppress(*LOST):
            await lock.close(timeout=CLOSE_S)  # waits until the server has released the lock: the next run can begin

    async def _begin(
        self,
        writer: asyncpg.Connection[asyncpg.Record],
        lock: asyncpg.Connection[asyncpg.Record],
        turn: asyncio.Lock,
        now: Instant,
        *,
        full: bool,
    ) -> PostgresNewGeneration:
        async with turn:
            await _remove("broken_generations", lock)
        number = await writer.fetchval(load("insert_generation"), now, full)
        if full:
            await writer.execute(load("add_percentile_table"), number)
        return PostgresNewGeneration(number, writer, lock, turn, full=full)

    async def remove_old(self) -> int:
        await self._database.fetch("remove_old_runs", RUNS_KEPT)
        async with bulk_connection(self._database.dsn) as connection:
            return await _remove("old_generations", connection)

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        return [_run(row) for row in await self._database.fetch("list_statistics_runs", limit)]

    async def percentiles_of(self, host_id: HostId) -> Sequence[StoredPercentile]:
        found = await self._database.fetch("percentiles_of_host", host_id)
        return [_percentile(row) for row in found]


async def _remove(which: str, connection: asyncpg.Connection[asyncpg.Record]) -> int:
    """Remove abandoned generations. The session must hold the run lock, so that no run uses them."""
    removed = 0
    with lost_means_unavailable():
        for row in await connection.fetch(load(which)):
            try:
                await connection.fetch(load("remove_generation"), row["generation"], timeout=REMOVE_TIMEOUT_S)
            except asyncpg.LockNotAvailableError:
                log.info("generation not removed: its percentiles are being read", generation=row["generation"])
                continue  # the next run tries again
            removed += 1
    return removed


_cut_values = values_of(
    "app_id processor_type n turnaround consecutive_valid score_mean tight_n tight_mean tight_sd retry_turnaround_s"
    " median_safe_runtime_s"
)
_run = mapper(
    HostStatisticsRun,
    full="is_full",
    parts=lambda row: msgspec.json.decode(row["parts"], type=tuple[RankedPart, ...]),
)
_percentile = mapper(StoredPercentile)
_facts = mapper(AppFacts)


MOST_ROWS = 5_000_000  # about 500 MB, read together; a single app may have more
HOST_FIELDS: Fields = (("host_id", "i4"), ("active", "?"), ("cpu_share", "f4"), ("gpu_share", "f4"))
ROW_FIELDS: Fields = tuple(field for field in HAV_FIELDS if field[0] != "active")  # s_per_flop while computing

Current = Mapping[AppId, Sequence[AppVersion]]


class PostgresHavTables:
    """Implements hoststats' HavTables."""

    def __init__(self, database: Database, *, most_rows: int = MOST_ROWS) -> None:
        self._database = database
        self._most_rows = most_rows

    async def refresh_turnarounds(self, app_id: AppId) -> None:
        await self._database.fetch("refresh_app_turnaround", app_id)
        await self._database.fetch("refresh_batch_turnarounds", app_id)

    async def of_apps(self, current: Current, since: Since) -> AsyncIterator[tuple[AppId, Table]]:
        if not current:
            return
        hosts = await self._hosts(since.called_at)
        rows = {row["app_version_id"]: row["rows"] for row in await self._database.fetch("sampled_versions")}
        sizes = {app_id: sum(rows.get(one.app_version_id, 0) for one in of_app) for app_id, of_app in current.items()}
        for bundle in bundles(sizes, most_rows=self._most_rows):
            tables = await self._tables({app_id: current[app_id] for app_id in bundle}, since)
            for app_id in bundle:
                table = tables.pop(app_id)
                complete(table, current[app_id], hosts, used_at=since.used_at)
                yield app_id, table

    async def _hosts(self, called_at: Instant) -> Table:
        async with bulk_connection(self._database.dsn) as connection:
            return await copied(connection, HOST_FIELDS, "ranked_hosts", called_at, timeout_s=COPY_TIMEOUT_S)

    async def _tables(self, current: Current, since: Since) -> dict[AppId, Table]:
        """Return each app's rows, without host data."""
        of_version = {one.app_version_id: app_id for app_id, of_app in current.items() for one in of_app}
        sorter = Sorter(of_version)
        reader = RowReader(ROW_FIELDS, sorter.take)
        wanted = (sorted(of_version), since.clean_at)
        async with bulk_connection(self._database.dsn) as connection:
            await copy_out(connection, reader.feed, "hav_rows", *wanted, timeout_s=COPY_TIMEOUT_S)
        reader.end()
        return {app_id: sorter.table(app_id) for app_id in current}

    async def facts(self, app_id: AppId) -> AppFacts:
        return _facts(await self._database.fetch_first("app_facts", app_id))


def bundles(sizes: Mapping[AppId, int], *, most_rows: int) -> Iterator[list[AppId]]:
    """Group the apps in order, up to a maximum number of rows per group. Pure.

    >>> list(bundles({AppId(3): 4, AppId(1): 2, AppId(2): 3, AppId(4): 9, AppId(5): 1}, most_rows=5))
    [[1, 2], [3], [4], [5]]
    """
    bundle: list[AppId] = []
    rows = 0
    for app_id in sorted(sizes):
        if bundle and rows + sizes[app_id] > most_rows:
            yield bundle
            bundle, rows = [], 0
        bundle.append(app_id)
        rows += sizes[app_id]
    if bundle:
        yield bundle


class Sorter:
    """Distributes rows to the tables of their apps. Pure."""

    def __init__(self, of_version: Mapping[AppVersionId, AppId]) -> None:
        self._versions = np.array(sorted(of_version), np.int32)
        self._apps = np.array([of_version[AppVersionId(one)] for one in self._versions.tolist()], np.int32)
        self._tables = {app_id: GrowingTable(HAV_FIELDS) for app_id in sorted(set(of_version.values()))}

    def take(self, rows: NDArray[np.void]) -> None:
        if len(self._tables) == 1:
            self._tables[AppId(int(self._apps[0]))].add(rows)
            return
        apps = self._apps[np.searchsorted(self._versions, rows["app_version_id"])]
        for app_id, table in self._tables.items():
            chosen = np.flatnonzero(apps == app_id)
            if chosen.size:
                table.add(
                    rows.take(chosen)
                )  # copies whole rows; rows[chosen] copies field by field and takes 17 times as long

    def table(self, app_id: AppId) -> Table:
        return self._tables.pop(app_id).table()


def complete(table: Table, versions: Sequence[AppVersion], hosts: Table, *, used_at: Instant) -> None:
    """Set in each row whether it is active, and add the time in which its host does not compute. Pure, in place."""
    if not hosts.size:
        table["active"] = False
        return
    at = np.minimum(np.searchsorted(hosts["host_id"], table["host_id"]), hosts.size - 1)
    known = hosts["host_id"][at] == table["host_id"]
    table["active"] = known & hosts["active"][at] & (table["stats_at"] >= used_at)
    on_gpu = np.isin(
        table["app_version_id"], [one.app_version_id for one in versions if one.plan_class.gpu_type is not None]
    )
    table["s_per_flop"] /= np.where(on_gpu, hosts["gpu_share"][at], hosts["cpu_share"][at])
