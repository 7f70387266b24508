"""Assembles the whole store on PostgreSQL, as an object with one attribute per port, and its metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from domain.clock import Clock, SystemClock
from domain.settings import SchedulerSettings, Settings
from domain.units import Instant, Seconds
from store.applications import PostgresApplications
from store.checking import PostgresChecking, PostgresRestoring
from store.forecasting import PostgresForecasting
from store.forecasts import PostgresForecasts
from store.group import Grouped
from store.insight import PostgresAttention, PostgresInsight, PostgresSamples
from store.ledger import PostgresLedger
from store.locks import DatabaseClock, DutyLocks, PostgresShards
from store.migrate import check_version
from store.notifications import PostgresNotifications
from store.ordering import PostgresOrdering, PostgresOrderingRules
from store.outputs import PostgresTrickles, PostgresUploads
from store.participation import PostgresParticipation
from store.people import PostgresAccess, PostgresPeople, PostgresVolunteers
from store.percentiles import PostgresGenerations, PostgresHavTables
from store.pool import CLOSE_S, LOST, Database, connect, lost_means_unavailable
from store.process_reports import PostgresProcessReports, PostgresSimulations
from store.quotas import PostgresArrivals
from store.repeating import PostgresRepeating
from store.reserving import PostgresReserving
from store.restrictions import PostgresRestrictions
from store.settings import PostgresNotes, PostgresSettings
from store.settling import PostgresTails, PostgresUnsettledJobs
from store.submissions import PostgresSubmissions
from store.sweeping import PostgresHistory, PostgresOutages, PostgresOverdueWork
from store.views import PostgresHostLists, PostgresListings, PostgresViews, PostgresVolunteerViews
from store.waiting import PostgresWaitingWork


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """The pool's connections, and its calls so far: statements, and transactions as one call each."""

    idle: int
    connections: int
    most: int
    calls: int


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Groups served so far by size, calls waiting for the next group, and open group connections."""

    sizes: Mapping[int, int]
    waiting: int
    connections: int


@dataclass(frozen=True, slots=True)
class DatabaseFigures:
    """Figures of the whole database. `sessions` are by PostgreSQL state; `oldest_s` is for open transactions."""

    size_bytes: int
    oldest_s: Seconds
    sessions: Mapping[str, int]


class PostgresFigures:
    """Figures of this process's store and its database. Only `database` and `web_sessions` query the database."""

    def __init__(self, database: Database, ledger: PostgresLedger) -> None:
        self._database = database
        self._ledger = ledger

    def pool(self) -> PoolFigures:
        return PoolFigures(*self._database.connections(), self._database.calls)

    def groups(self) -> Mapping[str, GroupFigures]:
        """Return the figures of the reading and the writing groups."""
        return {"read": _of(self._ledger.reads), "write": _of(self._ledger.writes)}

    async def database(self, now: Instant) -> DatabaseFigures:
        """Return the figures of the database. Raises UnavailableError."""
        row = await self._database.fetch_first("database_figures", now)
        sessions = dict(zip(row["states"], row["sessions"], strict=True))
        return DatabaseFigures(row["size_bytes"], Seconds(row["oldest_s"] or 0.0), sessions)

    async def web_sessions(self, now: Instant) -> Mapping[str, int]:
        """Return the numbers of signed-in project members and volunteers. Raises UnavailableError."""
        return dict(await self._database.fetch_first("count_web_sessions", now))


def _of(grouped: Grouped[Any, Any]) -> GroupFigures:  # Any: of any request and reply
    return GroupFigures(grouped.sizes, grouped.waiting(), grouped.connected())


class PostgresStore:
    """All ports of the services to the database. Created by `open_store`; must be closed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._noted_settings = Settings()
        self.ledger = PostgresLedger(database, self._scheduler_settings)
        self.waiting = PostgresWaitingWork(database)
        self.submissions = PostgresSubmissions(database)
        self.repeating = PostgresRepeating(database)
        self.unsettled = PostgresUnsettledJobs(database, self._scheduler_settings)
        self.overdue = PostgresOverdueWork(database, self._scheduler_settings)
        self.outages = PostgresOutages(database)
        self.uploads = PostgresUploads(database)
        self.people = PostgresPeople(database)
        self.volunteers = PostgresVolunteers(database)
        self.participation = PostgresParticipation(database)
        self.applications = PostgresApplications(database, self._note_settings)
        self.settings = PostgresSettings(database)
        self.access = PostgresAccess(database)
        self.views = PostgresViews(database)
        self.history = PostgresHistory(database)
        self.checking = PostgresChecking(database)
        self.restoring = PostgresRestoring(database)
        self.insight = PostgresInsight(database)
        self.attention = PostgresAttention(database)
        self.hav_tables = PostgresHavTables(database)
        self.generations = PostgresGenerations(database)
        self.tails = PostgresTails(database)
        self.notes = PostgresNotes(database)
        self.notifications = PostgresNotifications(database)
        self.forecasting = PostgresForecasting(database)
        self.forecasts = PostgresForecasts(database)
        self.ordering = PostgresOrdering(database)
        self.ordering_rules = PostgresOrderingRules(database)
        self.reserving = PostgresReserving(database)
        self.restrictions = PostgresRestrictions(database)
        self.listings = PostgresListings(database)
        self.host_lists = PostgresHostLists(database)
        self.volunteer_views = PostgresVolunteerViews(database)
        self.trickles = PostgresTrickles(database)
        self.process_reports = PostgresProcessReports(database)
        self.samples = PostgresSamples(database)
        self.simulations = PostgresSimulations(database)
        self.arrivals = PostgresArrivals(database)
        self.clock = DatabaseClock(database)
        self.figures = PostgresFigures(database, self.ledger)

    def shards(self) -> PostgresShards:
        """Return this worker's shards, on a separate connection. The caller must run and close the object."""
        return PostgresShards(self._database.dsn, self._clock)

    def duties(self, shared: Collection[str] = ()) -> DutyLocks:
        """Return the locks of periodic tasks, on a separate connection. The caller must close the object."""
        return DutyLocks(self._database.dsn, shared)

    async def close(self) -> None:
        """Finish running work and close all connections."""
        await self.ledger.close()
        await self.forecasts.close()
        await self.forecasting.close()
        await self._database.close()

    def _scheduler_settings(self) -> SchedulerSettings:
        return self._noted_settings.scheduler

    def _note_settings(self, settings: Settings) -> None:
        self._noted_settings = settings


async def open_store(dsn: str, *, clock: Clock | None = None, min_size: int = 2, max_size: int = 10) -> PostgresStore:
    """Open a store on a migrated database, with `min_size` to `max_size` pool connections.

    Raises SchemaVersionError if the schema does not match, and UnavailableError if the database cannot be reached.
    """
    connection = await connect(dsn)
    try:
        with lost_means_unavailable():
            await check_version(connection)
    finally:
        with suppress(*LOST):
            await connection.close(timeout=CLOSE_S)
    database = await Database.open(dsn, min_size=min_size, max_size=max_size)
    return PostgresStore(database, clock or SystemClock())
