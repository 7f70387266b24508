"""Answers operators' queries about active hosts, waiting work, items that need attention, and samples over time.

Queries that read whole tables use a separate connection, in a read-only transaction limited to one minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import msgspec
import numpy as np

from domain.apps import CPU, AppVersion, ProcessorType
from domain.attention import LOOKED_AT, BatchesInNeed, FailingHost, FailingVersion, HostContacts, Upkeep
from domain.batches import Batch
from domain.dispatch import RequestKey
from domain.hosts import HostAppVersion
from domain.insight import (
    MOST_SHORT_HOSTS,
    MOST_SHORT_JOBS,
    STANDING_FIELDS,
    Caller,
    HostSample,
    JobSize,
    Newcomers,
    RecentHost,
    RecentInstance,
    Short,
    WaitingBatch,
)
from domain.samples import MOST_SAMPLES, Sample
from domain.units import AppId, AppVersionId, BatchId, HostId, Instant, Seconds
from store import rows
from store.binary_copy import Table
from store.percentiles import MOST_S, bulk_connection, copied
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper

ACTIVE_FIELDS = (("host_id", "i4"), ("equipment", "i8"), ("calls_per_hour", "f8"))  # sql/insight.sql (active_hosts)


@dataclass(frozen=True, slots=True)
class Equipment:
    """A numbered set of hardware properties that determines which versions a host can run."""

    number: int
    platforms: frozenset[str]
    coprocessors: frozenset[ProcessorType]

    def could_run(self, versions: Sequence[AppVersion]) -> bool:
        """Return whether such hosts can run one of the versions, which must all be for one processor type."""
        needed = versions[0].processor_type
        has_it = needed == CPU or needed in self.coprocessors
        return has_it and not self.platforms.isdisjoint(version.platform for version in versions)


class PostgresInsight(OnDatabase):
    """Runs read-only queries about active hosts and waiting work. Takes no locks."""

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]:
        """Return the hosts active since `active_since`, for each group of versions for one processor type.

        A result has a new table (domain.insight.STANDING_FIELDS) of the hosts' rows with these versions, and the hosts
        without such a row that have one of the versions' platforms and the coprocessor they need. `one_in` reads a
        sample: one host in so many.
        """
        ids = _listed(version.app_version_id for versions in groups for version in versions)
        table, (hosts, equipment) = await asyncio.gather(
            self._rows_of(ids, active_since, now, one_in), self._active_hosts(active_since, now, one_in)
        )
        return await asyncio.to_thread(
            lambda: [_standing(table, hosts, equipment, versions) for versions in groups]
        )  # other tasks share this process, and there may be many hosts

    async def _rows_of(self, ids: str, active_since: Instant, now: Instant, one_in: int) -> Table:
        async with self._looking() as connection:
            return await copied(connection, STANDING_FIELDS, "hav_standings", ids, active_since, now, one_in)

    async def _active_hosts(
        self, active_since: Instant, now: Instant, one_in: int
    ) -> tuple[Table, Sequence[Equipment]]:
        async with self._looking() as connection:
            hosts = await copied(connection, ACTIVE_FIELDS, "active_hosts", active_since, now, one_in)
            rows = await connection.fetch(load("equipment_of_hosts"), active_since, timeout=MOST_S)
        return hosts, [_equipment(row) for row in rows]

    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        """Return the hosts with the latest requests, latest first."""
        async with self._looking() as connection:
            return [_caller(row) for row in await connection.fetch(load("recent_callers"), limit, timeout=MOST_S)]

    async def active_callers(self, limit: int, *, active_since: Instant) -> tuple[Sequence[Caller], int]:
        """Return at most `limit` recently active hosts, in an order independent of their properties, and the number of
        all.
        """
        async with self._looking() as connection:
            found = await connection.fetch(load("active_callers"), active_since, limit, timeout=MOST_S)
        return [_caller(row) for row in found], found[0]["active"] if found else 0

    async def caller(self, host_id: HostId) -> Caller:
        """Raises NotFoundError."""
        return _caller(await self._database.fetch_known("caller_of_host", host_id, kind="host"))

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        """Return the active batches with unsent instances, in dispatch order."""
        return [_waiting(row) for row in await self._database.fetch("waiting_batches", limit)]

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]:
        """Return the batches that recently active hosts cannot finish because of limits per volunteer or host."""
        found = await self._database.fetch(
            "short_batches", list(batch_ids), active_since, MOST_SHORT_HOSTS, MOST_SHORT_JOBS
        )
        return {row["batch_id"]: _short(row) for row in found}

    async def sampled_hosts(self, limit: int, *, active_since: Instant, most_held: int = 0) -> HostSample:
        """Return at most `limit` recently active hosts, with at most `most_held` of their instances in progress.

        The sample changes only when the set of active hosts does. Hosts with the lowest ids get their instances first.
        """
        async with self._looking() as connection:
            sampled = await connection.fetch(load("sampled_hosts"), active_since, limit, timeout=MOST_S)
            ids = [row["host_id"] for row in sampled]
            known = await connection.fetch(load("versions_of_hosts"), ids, timeout=MOST_S)
            held = (
                await connection.fetch(load("instances_on_hosts"), ids, most_held, timeout=MOST_S) if most_held else []
            )
        return await asyncio.to_thread(
            _host_sample, sampled, known, held
        )  # other tasks share this process, and there may be many rows

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]:
        return {row["batch_id"]: _job_size(row) for row in await self._database.fetch("sizes_of_batches", batch_ids)}

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[Connection]:
        async with (
            bulk_connection(self._database.dsn) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection


def _standing(
    table: Table, hosts: Table, equipment: Sequence[Equipment], versions: Sequence[AppVersion]
) -> tuple[Table, Newcomers]:
    """Select the rows and hosts for a group of versions for one processor type."""
    known = table[np.isin(table["app_version_id"], [version.app_version_id for version in versions])]
    able = [one.number for one in equipment if one.could_run(versions)]
    new = np.isin(hosts["equipment"], able) & ~np.isin(hosts["host_id"], known["host_id"])
    return known, Newcomers(int(np.count_nonzero(new)), float(hosts["calls_per_hour"][new].sum()))


def _equipment(row: asyncpg.Record) -> Equipment:
    return Equipment(row["equipment"], frozenset(row["platforms"]), frozenset(msgspec.json.decode(row["coprocessors"])))


def _host_sample(
    sampled: Sequence[asyncpg.Record], known: Sequence[asyncpg.Record], held: Sequence[asyncpg.Record]
) -> HostSample:
    """Build a host sample from host rows, their statistics with app versions, and their instances in progress."""
    havs: dict[HostId, list[HostAppVersion]] = {row["host_id"]: [] for row in sampled}
    instances: dict[HostId, list[RecentInstance]] = {row["host_id"]: [] for row in sampled}
    for row in known:
        havs[row["host_id"]].append(rows.host_app_version(row))
    for row in held:
        instances[row["host_id"]].append(_instance(row))
    hosts = [
        RecentHost(rows.host(row), row["rpc_interval_s"], tuple(havs[host_id]), tuple(instances[host_id]))
        for row in sampled
        if (host_id := row["host_id"])
    ]
    return HostSample(tuple(hosts), sampled[0]["active"] if sampled else 0)


def _listed(values: Iterable[object]) -> str:
    """Format values for queries on new connections, which would have to look up the type of an array argument.

    >>> _listed([1, 2])
    '1,2'
    """
    return ",".join(map(str, values))


_waiting = mapper(WaitingBatch, batch=rows.batch)
_short = mapper(Short)
_job_size = mapper(JobSize)
_instance = mapper(RecentInstance)
_caller = mapper(Caller, key=mapper(RequestKey, left_out=["instance_ids", "of_computer", "network"]))


class PostgresAttention(OnDatabase):
    """Reads what may need an operator's attention, by key, from counters and bounded reads. Takes no locks."""

    async def batches(self, *, now: Instant, failed: int, failed_fraction: float, limit: int) -> BatchesInNeed:
        """Return the batches; `failed` and `failed_fraction` of the ended jobs must have failed to count as failing."""
        rows = await self._database.fetch("batches_in_need", now, failed, failed_fraction, limit)
        return BatchesInNeed([row["batch_id"] for row in rows], rows[0]["found"] if rows else 0)

    async def apps_without_version(self) -> Sequence[AppId]:
        """Return the apps with active batches that are deprecated, or have no version for new work."""
        return [row["app_id"] for row in await self._database.fetch("apps_without_version")]

    async def without_version(self, app_ids: Sequence[AppId], limit: int) -> tuple[Sequence[Batch], int]:
        """Return the first active batches of these apps with unsent instances, and the number of all of them."""
        found = await self._database.fetch("batches_without_version", app_ids, limit)
        return [rows.batch(row) for row in found], found[0]["found"] if found else 0

    async def versions(self, *, since: Instant, failures: int) -> Sequence[FailingVersion]:
        """Return the versions with at least this many failures since an instant, among the latest LOOKED_AT."""
        return [_version(row) for row in await self._database.fetch("failing_versions", since, LOOKED_AT, failures)]

    async def hosts(
        self, *, since: Instant, results: int, failing_fraction: float, without: Sequence[AppVersionId], limit: int
    ) -> Sequence[FailingHost]:
        """Return hosts with at least this many results since an instant, of which a fraction has failed. Results of the
        versions `without` are not judged.
        """
        found = await self._database.fetch(
            "hosts_that_fail", since, LOOKED_AT, results, failing_fraction, list(without), limit
        )
        return [_failing_host(row) for row in found]

    async def contacts(self, *, now: Instant, since: Instant, silence_s: Seconds, intervals: float) -> HostContacts:
        """Count hosts by a scan of all hosts: do not call it for every page."""
        return _contacts(await self._database.fetch_first("host_contacts", now, since, silence_s, intervals))

    async def upkeep(self, *, attempts: int) -> Upkeep:
        return _upkeep(await self._database.fetch_first("upkeep", LOOKED_AT, attempts))


_version = mapper(FailingVersion)
_failing_host = mapper(FailingHost)
_contacts = mapper(HostContacts)
_upkeep = mapper(Upkeep)


class PostgresSamples(OnDatabase):
    """Stores samples of the project's figures by step."""

    async def write(self, step_s: int, at: Instant, figures: Mapping[str, float]) -> None:
        """Store a sample; it replaces an earlier one of the same step."""
        await self._database.execute("write_sample", step_s, at, rows.encoded(figures))

    async def last(self, step_s: int, until: Instant) -> Instant | None:
        """Return the instant of the latest sample until `until`."""
        row = await self._database.fetch_one("last_sample", step_s, until)
        return None if row is None else row["at"]

    async def between(self, step_s: int, from_at: Instant, to_at: Instant) -> Sequence[Sample]:
        """Return the samples of a period, in chronological order."""
        found = await self._database.fetch("list_samples", step_s, from_at, to_at, MOST_SAMPLES)
        return [_sample(row) for row in found]

    async def delete(self, step_s: int, *, before: Instant, after: Instant) -> None:
        """Delete samples outside a period."""
        await self._database.execute("delete_samples", step_s, before, after, MOST_SAMPLES)

    async def active_hosts(self, since: Instant) -> int:
        """Return the number of hosts with a request since `since`."""
        found: int = (await self._database.fetch("count_active_hosts", since))[0]["hosts"]
        return found


_sample = mapper(Sample, figures=lambda row: rows.decoded_object(row["figures"]))
