"""Reads the completion estimator's input for a batch with at most seventeen queries, for any size of batch and project.

Rows of the batch and its hosts are read by key. Other tables are sampled by page, with the same pages for all batches
of an app, so that a preview, the first forecast and a second read agree. For a minute, all batches of an app share a
sample of all hosts, and the work that precedes each batch in the order.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import asyncpg
import numpy as np

from domain.apps import CPU
from domain.batches import QoS
from domain.catalogue import Catalogue, current_versions
from domain.forecasting import (
    ACTIVE_WITHIN_S,
    FORECAST_HAV_FIELDS,
    INSTANCE_FIELDS,
    JOB_FIELDS,
    NEVER_FIRST,
    NEVER_MOVED,
    OTHERS_MOST,
    SAMPLED_HAV_FIELDS,
    SENT_FIELDS,
    SENT_MOST,
    SENT_WITHIN_S,
    AppTables,
    BatchTables,
    BatchTerms,
    SendPlace,
    SendRank,
    counted_since,
    moved_ahead,
)
from domain.settings import Settings
from domain.units import AppId, BatchId, Instant
from store import rows
from store.applications import read_versions
from store.binary_copy import Fields, Table, native_dtype
from store.percentiles import MOST_S, bulk_connection, copied
from store.pool import CLOSE_S, LOST, Database, OnDatabase, connect_patiently, lost_means_unavailable
from store.queries import load
from store.settings import with_relaxed

PLACES_S = 60.0  # lifetime of cached places
# Unsent instances before a batch's own, of its app and of other apps, what the latter need in flop, and after which
# instant the batch is sent first.
Ahead: TypeAlias = tuple[int, int, float, Instant]


@dataclass(frozen=True, slots=True)
class Places:
    """The work ahead of each batch in the order, as of `taken_at`."""

    taken_at: Instant
    ahead: Mapping[BatchId, Ahead]

    def serves(self, batch_id: BatchId, now: Instant) -> bool:
        """Return whether the places are current, or recent and include the batch."""
        age_s = now - self.taken_at
        return age_s == 0.0 or (0.0 < age_s < PLACES_S and batch_id in self.ahead)

    def of(self, batch_id: BatchId) -> Ahead:
        """Return the work ahead of a batch, zero for a batch with nothing to send."""
        return self.ahead.get(batch_id, NOTHING_AHEAD)


NOTHING_AHEAD: Ahead = (0, 0, 0.0, NEVER_FIRST)
Waiting: TypeAlias = tuple[SendRank, AppId, int, float, Instant]  # unsent instances, their flop on CPUs, as in Ahead


def places(waiting: Iterable[Waiting], taken_at: Instant) -> Places:
    """Compute the work ahead of each batch.

    >>> rows = ((1, 1, 0.5, 7), 1, 10, 5e9, 90.0), ((1, 1, 0.6, 5), 2, 4, 1e9, 80.0), ((0, 1, 9.0, 6), 1, 3, 2e9, -9.0)
    >>> places(rows, Instant(0.0)).ahead
    {6: (0, 0, 0.0, -9.0), 7: (3, 0, 0.0, 90.0), 5: (0, 13, 7000000000.0, 80.0)}
    """
    ahead: dict[BatchId, Ahead] = {}
    total, of_app, flop, flop_of_app = 0, Counter[AppId](), 0.0, defaultdict[AppId, float](float)
    for (*_, batch_id), app_id, unsent, needed, first_from in sorted(waiting):
        ahead[batch_id] = (of_app[app_id], total - of_app[app_id], flop - flop_of_app[app_id], first_from)
        total += unsent
        of_app[app_id] += unsent
        flop += needed
        flop_of_app[app_id] += needed
    return Places(taken_at, ahead)


def ahead_of(rank: SendRank, app_id: AppId, waiting: Iterable[Waiting]) -> tuple[int, int, float]:
    """Return the work ahead of a new batch of the app with this rank.

    >>> rows = ((1, 1, 0.5, 7), 1, 10, 5e9, 0.0), ((1, 1, 0.7, 5), 1, 4, 1e9, 0.0), ((0, 1, 9.0, 6), 2, 3, 2e9, 0.0)
    >>> ahead_of((1, 1, 0.6, 2), 1, rows), ahead_of((1, 1, 0.7, 8), 1, rows)
    ((10, 3, 2000000000.0), (14, 3, 2000000000.0))
    """
    before = [(app, unsent, flop) for at, app, unsent, flop, _ in waiting if at < rank]
    others = [(unsent, flop) for app, unsent, flop in before if app != app_id]
    of_app = sum(unsent for app, unsent, _ in before if app == app_id)
    return of_app, sum(unsent for unsent, _ in others), sum(flop for _, flop in others)


HAV_PAGES, HOST_PAGES, SENT_PAGES = 200, 100, 500  # read per table, or all of a smaller one; at most twice as many
MORE_SENT_PAGES, LEAST_SENT = (
    4_000,
    200,
)  # read if the first pages had fewer rows of the app, which then is a small part of the table
NO_BATCH = BatchId(0)  # not a batch id
SAMPLE_S = 60.0  # lifetime of a sample of all hosts


@dataclass(frozen=True, slots=True)
class Population:
    """A sample of all hosts' statistics for an app's versions, as of `taken_at`. A row represents `weight` rows."""

    taken_at: Instant
    versions: tuple[int, ...]
    others: Table
    weight: float
    active_hosts: int
    median_flop_per_s: float
    active_processors: float

    def serves(self, versions: Sequence[int], now: Instant) -> bool:
        return self.versions == tuple(versions) and 0.0 <= now - self.taken_at < SAMPLE_S


@dataclass(slots=True)
class Known:
    """Data shared by all batches for a minute."""

    populations: dict[AppId, Population] = field(default_factory=dict)
    places: Places = field(default_factory=lambda: places((), Instant(-math.inf)))


class PostgresForecasting(OnDatabase):
    """Implements batch_estimator's ForecastTables. It reads one batch at a time. Its owner must close it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._kept: asyncpg.Connection[asyncpg.Record] | None = None  # connecting would cost more than reading a batch
        self._turn = asyncio.Lock()
        self._known = Known()

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        async with self._looking() as connection:
            return await _BatchReader(connection, self._known, batch_id, now).tables()

    async def of_app(self, app_id: AppId, place: SendPlace, *, now: Instant) -> AppTables[Table] | None:
        """Read an app's sample on a temporary connection, one call at a time, because calls are rare."""
        async with (
            self._turn,
            bulk_connection(self._database.dsn) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.execute(load("by_key"))
            return await _BatchReader(connection, self._known, NO_BATCH, now).app_tables(app_id, place)

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """Open a read-only snapshot whose plans use keys and never scan a large table."""
        async with self._turn:
            connection = await self._connected()
            try:
                with lost_means_unavailable():
                    async with connection.transaction(isolation="repeatable_read", readonly=True):
                        await connection.execute(load("by_key"))
                        yield connection
            except BaseException:
                connection.terminate()  # an interrupted COPY ends now, not after the server has sent everything
                raise

    async def _connected(self) -> asyncpg.Connection[asyncpg.Record]:
        """Return the cached connection, or a new one."""
        if self._kept is None or self._kept.is_closed():
            self._kept = await connect_patiently(self._database.dsn)
            with lost_means_unavailable():
                await self._kept.execute(load("bulk_session"))
        return self._kept

    async def close(self) -> None:
        """Close the connection."""
        connection, self._kept = self._kept, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=CLOSE_S)


class _BatchReader:
    """Reads one batch through one connection."""

    def __init__(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        known: Known,
        batch_id: BatchId,
        now: Instant,
    ) -> None:
        self._connection = connection
        self._known = known
        self._batch_id = batch_id
        self._now = now

    async def tables(self) -> BatchTables[Table] | None:
        since = self._now - SENT_WITHIN_S
        row = await self._connection.fetchrow(load("forecast_batch"), self._batch_id, since, timeout=MOST_S)
        if row is None:
            return None
        population = await self._population(row)
        jobs = await self._copied("forecast_jobs", JOB_FIELDS, self._batch_id)
        instances = await self._instances(jobs)
        sent, sent_weight = await self._sent(row, since)
        havs = await self._copied("forecast_havs", FORECAST_HAV_FIELDS, *pairs(instances, sent))
        moved_at = counted_since(row["moved_at"], self._now, submitted_at=row["created_at"])
        begun = not row["held"] and moved_at == NEVER_MOVED and bool((instances["host_id"] >= 0).any())
        ahead = (0, 0, 0.0, await self._first_from(row)) if begun else await self._ahead(moved_at)
        terms = _terms(self._batch_id, row, population, ahead, moved_at)
        return BatchTables(terms, jobs, instances, havs, population.others, population.weight, sent, sent_weight)

    async def app_tables(self, app_id: AppId, place: SendPlace) -> AppTables[Table] | None:
        since = self._now - SENT_WITHIN_S
        row = await self._connection.fetchrow(load("forecast_app"), app_id, since, timeout=MOST_S)
        if row is None:
            return None
        population = await self._population(row)
        sent, sent_weight = await self._sent(row, since)
        havs = await self._copied(
            "forecast_havs", FORECAST_HAV_FIELDS, *pairs(np.empty(0, native_dtype(INSTANCE_FIELDS)), sent)
        )
        catalogue = await self._catalogue()
        return AppTables(
            population.active_hosts,
            population.median_flop_per_s,
            population.active_processors,
            havs,
            population.others,
            population.weight,
            sent,
            sent_weight,
            *ahead_of(place.rank(app_id, catalogue, self._now), app_id, await self._waiting(catalogue)),
            place.first_from(app_id, catalogue),
            frozenset(row["withdrawn"]),
        )

    async def _catalogue(self) -> Catalogue:
        """Return the apps with their current versions, the settings and cut points only."""
        apps = {row["app_id"]: rows.app(row) for row in await self._connection.fetch(load("list_apps"), timeout=MOST_S)}
        current = current_versions(await read_versions(self._connection))
        changed = await self._connection.fetch(load("list_settings"), timeout=MOST_S)
        cuts = map(rows.cut_points, await self._connection.fetch(load("current_cut_points"), timeout=MOST_S))
        settings, _ = Settings.from_stored({row["key"]: rows.decoded(row["value"]) for row in changed})
        return Catalogue(apps, current=current, cut_points=with_relaxed(cuts, ()), settings=settings)

    async def _waiting(self, catalogue: Catalogue) -> list[Waiting]:
        found = await self._connection.fetch(load("forecast_places"), catalogue.sent_apps(), timeout=MOST_S)
        return [_waiting(row, catalogue, self._now) for row in found]

    async def _sent(self, row: asyncpg.Record, since: float) -> tuple[Table, float]:
        """Return a sample of the instances in the app's other batches, and the weight of each row."""
        share = per_cent(row["sent_pages"], SENT_PAGES)
        sent = await self._sent_in(row, since, share)
        if sent.size < LEAST_SENT and share < 100.0:
            share = per_cent(row["sent_pages"], MORE_SENT_PAGES)
            sent = await self._sent_in(row, since, share)
        if share == 100.0:  # the rows were chosen one by one
            sent["page"] = np.arange(sent.size)
        return sent, 100.0 / share

    async def _sent_in(self, row: asyncpg.Record, since: float, share: float) -> Table:
        sample = share, float(row["app_id"])
        return await self._copied(
            "forecast_sent", SENT_FIELDS, row["app_version_ids"], self._batch_id, since, SENT_MOST, *sample
        )

    async def _first_from(self, row: asyncpg.Record) -> Instant:
        catalogue = await self._catalogue()
        return catalogue.sent_first_from(row["app_id"], QoS(row["qos"]), row["deadline_at"], unpaid=row["unpaid"])

    async def _ahead(self, moved_at: Instant) -> Ahead:
        """Return the work ahead of the batch in the order since its last move."""
        known = self._known.places
        if known.taken_at < moved_at or not known.serves(self._batch_id, self._now):
            self._known.places = places(await self._waiting(await self._catalogue()), self._now)
        return self._known.places.of(self._batch_id)

    async def _population(self, row: asyncpg.Record) -> Population:
        """Return the cached sample if it is less than a minute old, otherwise a new one."""
        known = self._known.populations.get(row["app_id"])
        if known is None or not known.serves(row["app_version_ids"], self._now):
            known = self._known.populations[row["app_id"]] = await self._sampled(row)
        return known

    async def _sampled(self, row: asyncpg.Record) -> Population:
        share, seed = per_cent(row["host_pages"], HOST_PAGES), float(row["app_id"])
        hosts = await self._connection.fetchrow(
            load("forecast_hosts"), share, seed, self._now - ACTIVE_WITHIN_S, timeout=MOST_S
        )
        assert hosts is not None
        return Population(
            self._now,
            tuple(row["app_version_ids"]),
            *await self._others(row, seed),
            round(hosts["hosts"] * 100.0 / share),
            hosts["median_flop_per_s"],
            hosts["processors"] * 100.0 / share,
        )

    async def _instances(self, jobs: Table) -> Table:
        if not jobs.size:
            return np.empty(0, native_dtype(INSTANCE_FIELDS))
        ends = int(jobs["job_id"].min()), int(jobs["job_id"].max())
        return await self._copied("forecast_instances", INSTANCE_FIELDS, self._batch_id, *ends)

    async def _others(self, row: asyncpg.Record, seed: float) -> tuple[Table, float]:
        """Return a sample of the app's rows and the weight of each row."""
        versions = row["app_version_ids"]
        if await self._connection.fetchval(load("forecast_few_havs"), versions, OTHERS_MOST, timeout=MOST_S):
            return await self._copied("forecast_havs_few", SAMPLED_HAV_FIELDS, versions, OTHERS_MOST), 1.0
        share = per_cent(row["hav_pages"], HAV_PAGES)
        sample = await self._copied("forecast_havs_sampled", SAMPLED_HAV_FIELDS, versions, OTHERS_MOST, share, seed)
        return sample, 100.0 / share

    async def _copied(self, query: str, fields: Fields, *arguments: object) -> Table:
        return await copied(self._connection, fields, query, *arguments)


def _terms(
    batch_id: BatchId, row: asyncpg.Record, population: Population, ahead: Ahead, moved_at: Instant
) -> BatchTerms:
    return BatchTerms(
        batch_id,
        row["app_id"],
        row["created_at"],
        row["delay_bound_s"],
        QoS(row["qos"]),
        population.active_hosts,
        population.median_flop_per_s,
        population.active_processors,
        *ahead[:3],
        row["held"],
        moved_at,
        ahead[3],
        moved_ahead(row["order_tier"], row["foremost_tier"]),
        frozenset(row["withdrawn"]),
    )


def _waiting(row: asyncpg.Record, catalogue: Catalogue, now: Instant) -> Waiting:
    app_id = row["app_id"]
    own = row["order_tier"], row["order_key"], row["batch_id"]
    place = SendPlace(QoS(row["qos"]), row["deadline_at"], row["unpaid"], *own)
    rank, first_from = place.rank(app_id, catalogue, now), place.first_from(app_id, catalogue)
    needs = row["unsent"] * row["flop"] if CPU in catalogue.processor_types(app_id) else 0.0  # others need no CPU time
    return rank, app_id, row["unsent"], needs, first_from


def per_cent(pages: int, most: int) -> float:
    """Return the percentage of a table of `pages` pages that is at least `most` pages, if it has so many.

    It is halved when the table has doubled: as it grows, for example by a new batch, the sample has the same pages.

    >>> per_cent(20, 200), per_cent(399, 200), per_cent(400, 200), per_cent(8_000, 200)
    (100.0, 100.0, 50.0, 3.125)
    """
    return 100.0 / 2.0 ** max(0, (pages // most).bit_length() - 1)


def pairs(instances: Table, sent: Table) -> tuple[list[int], list[int]]:
    """Return the distinct (host, app version) pairs of sent instances as two columns."""
    was_sent = instances[instances["host_id"] >= 0]
    hosts = np.concatenate([was_sent["host_id"], sent["host_id"]]).astype(np.int64)
    versions = np.concatenate([was_sent["app_version_id"], sent["app_version_id"]]).astype(np.int64)
    keys = np.unique(hosts << 32 | versions)
    return (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
