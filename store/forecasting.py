"""What does the completion estimator read of a batch? Eight queries, however large the batch, its app or the project.

Rows of the batch and of its hosts are found by key; of everything else a sample of pages is read, the same pages for
the same batch, so that a forecast does not change because it is asked for twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import numpy as np

from domain.forecasting import (
    ACTIVE_WITHIN_S,
    FORECAST_HAV_FIELDS,
    INSTANCE_FIELDS,
    JOB_FIELDS,
    OTHERS_MOST,
    SAMPLED_HAV_FIELDS,
    SENT_FIELDS,
    SENT_MOST,
    SENT_WITHIN_S,
    BatchTables,
    BatchTerms,
)
from domain.units import BatchId, Instant
from store.binary_copy import Fields, Table, TableReader, native_dtype
from store.percentiles import bulk_connection
from store.pool import Database, lost_means_unavailable
from store.queries import load

MOST_S = 60.0  # of one query
HAV_PAGES, HOST_PAGES, SENT_PAGES = 200, 100, 200  # read of each table, about
SEED_RANGE = 1 << 31


class PostgresForecasting:
    """Satisfies batch_estimator's ForecastTables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        async with self._looking() as connection:
            return await _Look(connection, batch_id, now).tables()

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """Everything is read as of one instant, by key: no plan reads a large table whole."""
        async with (
            bulk_connection(self._database.dsn) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.execute(load("by_key"))
            yield connection


class _Look:
    """One batch, through one connection."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record], batch_id: BatchId, now: Instant) -> None:
        self._connection = connection
        self._batch_id = batch_id
        self._now = now
        self._seed = float(batch_id % SEED_RANGE)

    async def tables(self) -> BatchTables[Table] | None:
        since = self._now - SENT_WITHIN_S
        row = await self._connection.fetchrow(
            load("forecast_batch"), self._batch_id, OTHERS_MOST, since, timeout=MOST_S
        )
        if row is None:
            return None
        versions = row["app_version_ids"]
        terms = await self._terms(row)
        jobs = await self._copied("forecast_jobs", JOB_FIELDS, self._batch_id)
        instances = await self._instances(jobs)
        share = per_cent(row["sent_pages"], SENT_PAGES)
        sent = await self._copied(
            "forecast_sent", SENT_FIELDS, versions, self._batch_id, since, SENT_MOST, share, self._seed
        )
        others, weight = await self._others(row)
        havs = await self._copied("forecast_havs", FORECAST_HAV_FIELDS, *pairs(instances, sent))
        return BatchTables(terms, jobs, instances, havs, others, weight, sent)

    async def _terms(self, row: asyncpg.Record) -> BatchTerms:
        share = per_cent(row["host_pages"], HOST_PAGES)
        hosts = await self._connection.fetchrow(
            load("forecast_hosts"), share, self._seed, self._now - ACTIVE_WITHIN_S, timeout=MOST_S
        )
        assert hosts is not None
        return BatchTerms(
            self._batch_id,
            row["app_id"],
            row["created_at"],
            row["delay_bound_s"],
            row["quorum"],
            round(hosts["hosts"] * 100.0 / share),
            hosts["median_flop_per_s"],
        )

    async def _instances(self, jobs: Table) -> Table:
        if not jobs.size:
            return np.empty(0, native_dtype(INSTANCE_FIELDS))
        ends = int(jobs["job_id"].min()), int(jobs["job_id"].max())
        return await self._copied("forecast_instances", INSTANCE_FIELDS, self._batch_id, *ends)

    async def _others(self, row: asyncpg.Record) -> tuple[Table, float]:
        """A sample of the app's rows, and how many rows each found stands for."""
        versions = row["app_version_ids"]
        if row["few_havs"]:
            return await self._copied("forecast_havs_few", SAMPLED_HAV_FIELDS, versions, OTHERS_MOST), 1.0
        share = per_cent(row["hav_pages"], HAV_PAGES)
        sample = await self._copied(
            "forecast_havs_sampled", SAMPLED_HAV_FIELDS, versions, OTHERS_MOST, share, self._seed
        )
        return sample, 100.0 / share

    async def _copied(self, name: str, fields: Fields, *arguments: object) -> Table:
        reader = TableReader(fields)

        async def take(data: bytes) -> None:
            reader.feed(data)

        with lost_means_unavailable():
            await self._connection.copy_from_query(load(name), *arguments, output=take, format="binary", timeout=MOST_S)
        return reader.table()


def per_cent(pages: int, most: int) -> float:
    """Which part of a table has about `most` of its pages.

    >>> per_cent(20, 200), per_cent(8_000, 200)
    (100.0, 2.5)
    """
    return 100.0 if pages <= most else 100.0 * most / pages


def pairs(instances: Table, sent: Table) -> tuple[list[int], list[int]]:
    """The distinct (host, app version) of those that were sent, as two columns."""
    was_sent = instances[instances["host_id"] >= 0]
    hosts = np.concatenate([was_sent["host_id"], sent["host_id"]]).astype(np.int64)
    versions = np.concatenate([was_sent["app_version_id"], sent["app_version_id"]]).astype(np.int64)
    keys = np.unique(hosts << 32 | versions)
    return (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
