"""The whole store on PostgreSQL: one object with one attribute per port."""

from __future__ import annotations

from contextlib import suppress

from domain.clock import Clock, SystemClock
from domain.settings import SchedulerSettings, Settings
from store.access import PostgresAccess
from store.applications import PostgresApplications
from store.arrivals import PostgresArrivals
from store.belongings import PostgresBelongings
from store.checking import PostgresChecking
from store.duties import DatabaseClock, DutyLocks
from store.figures import PostgresFigures
from store.forecasting import PostgresForecasting
from store.forecasts import PostgresForecasts
from store.hav_tables import PostgresHavTables
from store.history import PostgresHistory
from store.host_lists import PostgresHostLists
from store.insight import PostgresInsight
from store.ledger import PostgresLedger
from store.listings import PostgresListings
from store.migrate import check_version
from store.notes import PostgresNotes
from store.ordering import PostgresOrdering
from store.ordering_rules import PostgresOrderingRules
from store.people import PostgresPeople, PostgresVolunteers
from store.percentiles import PostgresGenerations
from store.pool import CLOSE_S, LOST, Database, connect, lost_means_unavailable
from store.process_reports import PostgresProcessReports, PostgresSimulations
from store.reserving import PostgresReserving
from store.restoring import PostgresRestoring
from store.settings import PostgresSettings
from store.settling import PostgresUnsettledJobs
from store.shards import PostgresShards
from store.submissions import PostgresSubmissions
from store.sweeping import PostgresOutages, PostgresOverdueWork
from store.tails import PostgresTails
from store.trickles import PostgresTrickles
from store.uploads import PostgresUploads
from store.views import PostgresViews
from store.waiting import PostgresWaitingWork


class PostgresStore:
    """Everything services need of the database. Made by `open_store`; close it in the end."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._noted_settings = Settings()
        self.ledger = PostgresLedger(database, self._scheduler_settings)
        self.waiting = PostgresWaitingWork(database)
        self.submissions = PostgresSubmissions(database)
        self.unsettled = PostgresUnsettledJobs(database, self._scheduler_settings)
        self.overdue = PostgresOverdueWork(database, self._scheduler_settings)
        self.outages = PostgresOutages(database)
        self.uploads = PostgresUploads(database)
        self.people = PostgresPeople(database)
        self.volunteers = PostgresVolunteers(database)
        self.applications = PostgresApplications(database, self._note_settings)
        self.settings = PostgresSettings(database)
        self.access = PostgresAccess(database)
        self.views = PostgresViews(database)
        self.history = PostgresHistory(database)
        self.checking = PostgresChecking(database)
        self.restoring = PostgresRestoring(database)
        self.insight = PostgresInsight(database)
        self.hav_tables = PostgresHavTables(database)
        self.generations = PostgresGenerations(database)
        self.tails = PostgresTails(database)
        self.notes = PostgresNotes(database)
        self.forecasting = PostgresForecasting(database)
        self.forecasts = PostgresForecasts(database)
        self.ordering = PostgresOrdering(database)
        self.ordering_rules = PostgresOrderingRules(database)
        self.reserving = PostgresReserving(database)
        self.listings = PostgresListings(database)
        self.host_lists = PostgresHostLists(database)
        self.belongings = PostgresBelongings(database)
        self.trickles = PostgresTrickles(database)
        self.process_reports = PostgresProcessReports(database)
        self.simulations = PostgresSimulations(database)
        self.arrivals = PostgresArrivals(database)
        self.clock = DatabaseClock(database)
        self.figures = PostgresFigures(database, self.ledger)

    def shards(self) -> PostgresShards:
        """This worker's part of the shards, on a connection of its own; its owner runs and closes it."""
        return PostgresShards(self._database.dsn, self._clock)

    def duties(self) -> DutyLocks:
        """The locks of background duties, on a connection of their own; their owner closes it."""
        return DutyLocks(self._database.dsn)

    async def close(self) -> None:
        """Finish what is under way and let go of every connection."""
        await self.ledger.close()
        await self.forecasts.close()
        await self.forecasting.close()
        await self._database.close()

    def _scheduler_settings(self) -> SchedulerSettings:
        return self._noted_settings.scheduler

    def _note_settings(self, settings: Settings) -> None:
        self._noted_settings = settings


async def open_store(dsn: str, *, clock: Clock | None = None, min_size: int = 2, max_size: int = 10) -> PostgresStore:
    """A store on a migrated database, with between `min_size` and `max_size` connections in its pool.

    Raises SchemaVersionError when the schema is of another version, UnavailableError when there is no database.
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
