"""What do operators ask about hosts that call and work that waits? Answered without a lock and without a write.

Whole tables are read by a connection of its own, in a read-only transaction that ends after a minute at the latest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import asyncpg

from domain.apps import AppVersion, ProcessorType
from domain.dispatch import RequestKey
from domain.errors import NotFoundError
from domain.hosts import HostAppVersion
from domain.insight import (
    STANDING_FIELDS,
    Caller,
    HostSample,
    JobSize,
    Newcomers,
    RecentHost,
    SentTerms,
    WaitingBatch,
    WorkAhead,
)
from domain.units import BatchId, HostId, InstanceId, Instant
from store import rows
from store.binary_copy import Table, TableReader
from store.percentiles import bulk_connection
from store.pool import Database, lost_means_unavailable
from store.queries import load

MOST_S = 60.0  # of one look at whole tables


class PostgresInsight:
    """Satisfies operations' Insight."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standings(self, versions: Sequence[AppVersion], *, active_since: Instant, now: Instant) -> Table:
        reader = TableReader(STANDING_FIELDS)

        async def take(data: bytes) -> None:
            reader.feed(data)

        async with self._looking() as connection:
            with lost_means_unavailable():
                await connection.copy_from_query(
                    load("hav_standings"),
                    _listed(version.app_version_id for version in versions),
                    active_since,
                    now,
                    output=take,
                    format="binary",
                    timeout=MOST_S,
                )
        return reader.table()

    async def newcomers(
        self,
        versions: Sequence[AppVersion],
        *,
        gpu_type: ProcessorType | None,
        active_since: Instant,
        now: Instant,
    ) -> Newcomers:
        ids = _listed(version.app_version_id for version in versions)
        platforms = _listed(sorted({version.platform for version in versions}))
        async with self._looking() as connection:
            row = await connection.fetchrow(
                load("newcomer_calls"), ids, platforms, gpu_type, active_since, now, timeout=MOST_S
            )
        assert row is not None
        return Newcomers(row["hosts"], row["calls_per_hour"])

    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        async with self._looking() as connection:
            return [_caller(row) for row in await connection.fetch(load("recent_callers"), limit, timeout=MOST_S)]

    async def caller(self, host_id: HostId) -> Caller:
        row = await self._database.fetch_one("caller_of_host", host_id)
        if row is None:
            raise NotFoundError("host", host_id)
        return _caller(row)

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        return [
            WaitingBatch(rows.batch(row), row["retries_unsent"], row["delay_bound_s"], row["most_taken"])
            for row in await self._database.fetch("waiting_batches", limit)
        ]

    async def work_ahead(self, batch_id: BatchId) -> WorkAhead:
        row = await self._database.fetch_one("work_ahead", batch_id)
        assert row is not None
        return WorkAhead(row["batches"], row["unsent"])

    async def sampled_hosts(self, limit: int, *, active_since: Instant) -> HostSample:
        async with self._looking() as connection:
            sampled = await connection.fetch(load("sampled_hosts"), active_since, limit, timeout=MOST_S)
            ids = [row["host_id"] for row in sampled]
            known = await connection.fetch(load("versions_of_hosts"), ids, timeout=MOST_S)
        return await asyncio.to_thread(_host_sample, sampled, known)  # others are served here, and rows may be many

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]:
        return {
            row["batch_id"]: JobSize(row["flop"], row["memory_bytes"], row["ncpus"], row["quorum"])
            for row in await self._database.fetch("sizes_of_batches", batch_ids)
        }

    async def terms(self, instance_id: InstanceId) -> SentTerms:
        """One moved to the history between the two looks is found by the second."""
        row = await self._database.fetch_one("instance_terms", instance_id)
        if row is None:
            row = await self._database.fetch_one("finished_instance_terms", instance_id)
        if row is None:
            raise NotFoundError("instance", instance_id)
        return SentTerms(
            row["instance_id"],
            row["job_id"],
            row["batch_id"],
            row["volunteer_id"],
            row["app_version_id"],
            row["timeout_at"],
            row["turnaround_sample"],
            row["copied_because"] or "",
        )

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        async with bulk_connection(self._database.dsn) as connection, connection.transaction(readonly=True):
            yield connection


def _host_sample(sampled: Sequence[asyncpg.Record], known: Sequence[asyncpg.Record]) -> HostSample:
    """Of rows of hosts, and rows of what is known of them with app versions."""
    havs: dict[HostId, list[HostAppVersion]] = {row["host_id"]: [] for row in sampled}
    for row in known:
        havs[row["host_id"]].append(rows.host_app_version(row))
    hosts = [RecentHost(rows.host(row), row["rpc_interval_s"], tuple(havs[row["host_id"]])) for row in sampled]
    return HostSample(tuple(hosts), sampled[0]["active"] if sampled else 0)


def _listed(values: Iterable[object]) -> str:
    """Values as the queries on new connections take them: what an array is, each would have to look up first.

    >>> _listed([1, 2])
    '1,2'
    """
    return ",".join(map(str, values))


def _caller(row: asyncpg.Record) -> Caller:
    key = RequestKey(row["authenticator_hash"], row["host_id"], row["host_cpid"])
    return Caller(row["host_id"], key, row["last_rpc_at"], row["rpc_interval_s"])
