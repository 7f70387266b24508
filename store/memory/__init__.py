"""The ports of the services over plain dictionaries, without input or output: for tests and the simulator."""

from __future__ import annotations

from store.memory.applications import MemoryApplications
from store.memory.forecasting import MemoryForecasting
from store.memory.forecasts import MemoryForecasts
from store.memory.insight import MemoryHostLists, MemoryInsight
from store.memory.ledger import MemoryLedger, MemoryTrickles
from store.memory.ordering import MemoryOrdering, MemoryOrderingRules, OrderBook
from store.memory.people import MemoryAccess, MemoryPeople, MemoryVolunteers
from store.memory.percentiles import MemoryGenerations, MemoryHavTables
from store.memory.quotas import MemoryArrivals
from store.memory.registry import Registry
from store.memory.reserving import MemoryReserving
from store.memory.settings import MemoryNotes, MemoryProcessReports, MemorySettings, MemorySimulations
from store.memory.settling import MemoryTails, MemoryUnsettled
from store.memory.submissions import MemorySubmissions
from store.memory.sweeping import MemoryHistory, MemoryOutages, MemoryOverdue, MemoryUploads
from store.memory.views import MemoryBelongings, MemoryListings, MemoryViews
from store.memory.waiting import AllShards, MemoryWaiting
from store.memory.work import Work

__all__ = ["AllShards", "MemoryStore"]


class MemoryStore:
    """Everything in this process; gone with it. One attribute per port, as store.postgres.PostgresStore."""

    def __init__(self) -> None:
        registry = Registry()
        work = Work(registry)
        book = OrderBook()
        self.people = MemoryPeople(registry)
        self.volunteers = MemoryVolunteers(registry)
        self.applications = MemoryApplications(registry, work)
        self.access = MemoryAccess(registry)
        self.settings = MemorySettings(registry)
        self.submissions = MemorySubmissions(registry, work, book)
        self.waiting = MemoryWaiting(work)
        self.trickles = MemoryTrickles()
        self.ledger = MemoryLedger(registry, work, self.trickles)
        self.unsettled = MemoryUnsettled(work)
        self.overdue = MemoryOverdue(registry, work)
        self.outages = MemoryOutages(registry, work)
        self.uploads = MemoryUploads(work)
        self.hav_tables = MemoryHavTables(work)
        self.generations = MemoryGenerations(registry)
        self.views = MemoryViews(registry, work)
        self.history = MemoryHistory(registry, work)
        self.insight = MemoryInsight(registry, work)
        self.tails = MemoryTails(work)
        self.notes = MemoryNotes(registry)
        self.forecasting = MemoryForecasting(registry, work)
        self.forecasts = MemoryForecasts(registry, work)
        self.ordering = MemoryOrdering(registry, work, book)
        self.ordering_rules = MemoryOrderingRules(work, book)
        self.reserving = MemoryReserving(registry, work, book)
        self.listings = MemoryListings(registry, work)
        self.host_lists = MemoryHostLists(registry, work, self.generations)
        self.belongings = MemoryBelongings(work)
        self.process_reports = MemoryProcessReports()
        self.simulations = MemorySimulations()
        self.arrivals = MemoryArrivals()

    def shards(self) -> AllShards:
        return AllShards()

    async def close(self) -> None:
        """There is nothing to close."""
