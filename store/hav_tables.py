"""What do the host statistics read of hosts? Whole tables by binary COPY, several apps from one pass over the rows.

A pass costs as much for one app as for all: so apps are read together, as many as stay below a number of rows, which
bounds the memory. What is asked of hosts is read once and looked up for each row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.apps import AppVersion
from domain.progress import note_progress
from domain.ranking import HAV_FIELDS, AppFacts, Since
from domain.units import AppId, AppVersionId, Instant
from store.binary_copy import Fields, GrowingTable, RowReader, Table, TableReader
from store.percentiles import COPY_TIMEOUT_S, bulk_connection
from store.pool import Database
from store.queries import load

MOST_ROWS = 5_000_000  # read together, unless one app alone has more: about 500 MB
HOST_FIELDS: Fields = (("host_id", "i4"), ("active", "?"), ("cpu_share", "f4"), ("gpu_share", "f4"))
ROW_FIELDS: Fields = tuple(field for field in HAV_FIELDS if field[0] != "active")  # s_per_flop while it computes

Current = Mapping[AppId, Sequence[AppVersion]]


class PostgresHavTables:
    """Satisfies hoststats' HavTables."""

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
        reader = TableReader(HOST_FIELDS)
        await self._copied("ranked_hosts", (called_at,), reader.feed)
        return reader.table()

    async def _tables(self, current: Current, since: Since) -> dict[AppId, Table]:
        """Each app's rows; what is asked of hosts is still missing."""
        of_version = {one.app_version_id: app_id for app_id, of_app in current.items() for one in of_app}
        sorter = Sorter(of_version)
        reader = RowReader(ROW_FIELDS, sorter.take)
        await self._copied("hav_rows", (sorted(of_version), since.clean_at), reader.feed)
        reader.end()
        return {app_id: sorter.table(app_id) for app_id in current}

    async def _copied(self, query: str, arguments: Sequence[object], feed: Callable[[bytes], None]) -> None:
        async def take(data: bytes) -> None:
            feed(data)
            note_progress()

        async with bulk_connection(self._database.dsn) as connection:
            await connection.copy_from_query(
                load(query), *arguments, output=take, format="binary", timeout=COPY_TIMEOUT_S
            )

    async def facts(self, app_id: AppId) -> AppFacts:
        row = await self._database.fetch_one("app_facts", app_id)
        assert row is not None
        return AppFacts(row["typical_flop"], row["validation_lag_s"])


def bundles(sizes: Mapping[AppId, int], *, most_rows: int) -> Iterator[list[AppId]]:
    """The apps in order, together as long as they have at most so many rows. Pure.

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
    """Puts rows with the table of their app. Pure."""

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
                table.add(rows.take(chosen))  # whole rows; rows[chosen] goes field by field, and takes 17 times as long

    def table(self, app_id: AppId) -> Table:
        return self._tables.pop(app_id).table()


def complete(table: Table, versions: Sequence[AppVersion], hosts: Table, *, used_at: Instant) -> None:
    """Say of each row whether it is active, and count the time its host does not compute. Pure, in place."""
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
