"""Implements the services' ports in memory, without input or output, for the simulator.

`tests.memory` adds the ports for people's requests, for tests.
"""

from __future__ import annotations

from store.memory.applications import MemoryApplications, MemoryNotes, MemoryPeople, MemorySettings, MemoryVolunteers
from store.memory.forecasting import MemoryForecasting
from store.memory.forecasts import MemoryForecasts
from store.memory.ledger import MemoryLedger, MemoryTrickles
from store.memory.ordering import MemoryOrdering, MemoryOrderingRules, OrderBook
from store.memory.percentiles import MemoryGenerations, MemoryHavTables
from store.memory.registry import Registry
from store.memory.reserving import MemoryReserving
from store.memory.settling import MemoryTails, MemoryUnsettled
from store.memory.submissions import MemorySubmissions
from store.memory.sweeping import MemoryHistory, MemoryOutages, MemoryOverdue, MemoryUploads
from store.memory.waiting import AllShards, MemoryInsight, MemoryViews, MemoryWaiting
from store.memory.work import Work

__all__ = ["AllShards", "MemoryStore"]


class MemoryStore:
    """All ports, on objects in this process. One attribute per port, named as in store.postgres.PostgresStore."""

    def __init__(self) -> None:
        self._registry = registry = Registry()
        self._work = work = Work(registry)
        self._book = book = OrderBook()
        trickles = MemoryTrickles()
        self.people = MemoryPeople(registry, work)
        self.volunteers = MemoryVolunteers(registry, work)
        self.applications = MemoryApplications(registry, work)
        self.settings = MemorySettings(registry, work)
        self.submissions = MemorySubmissions(registry, work, book)
        self.waiting = MemoryWaiting(registry, work)
        self.ledger = MemoryLedger(registry, work, trickles)
        self.unsettled = MemoryUnsettled(registry, work)
        self.overdue = MemoryOverdue(registry, work)
        self.outages = MemoryOutages(registry, work)
        self.uploads = MemoryUploads(registry, work)
        self.hav_tables = MemoryHavTables(registry, work)
        self.generations = MemoryGenerations(registry, work)
        self.views = MemoryViews(registry, work)
        self.history = MemoryHistory(registry, work)
        self.insight = MemoryInsight(registry, work)
        self.tails = MemoryTails(registry, work)
        self.notes = MemoryNotes(registry, work)
        self.forecasting = MemoryForecasting(registry, work)
        self.forecasts = MemoryForecasts(registry, work)
        self.ordering = MemoryOrdering(registry, work, book)
        self.ordering_rules = MemoryOrderingRules(registry, work, book)
        self.reserving = MemoryReserving(registry, work, book)
