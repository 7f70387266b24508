"""The simulator's in-memory store, extended by the ports of people's requests for tests."""

from __future__ import annotations

import store.memory
from store.memory import AllShards
from store.memory.ledger import MemoryLedger
from tests.memory.attention import MemoryAttention
from tests.memory.files import MemoryApplications, MemoryForecasts, MemoryHistory, MemoryTrickles, MemoryUploads
from tests.memory.insight import MemoryGenerations, MemoryHostLists, MemoryInsight
from tests.memory.notifications import MemoryNotifications
from tests.memory.ordering import MemoryOrderingRules
from tests.memory.people import MemoryAccess, MemoryParticipation, MemoryPeople, MemoryRestrictions, MemoryVolunteers
from tests.memory.repeating import MemoryRepeating, MemorySubmissions
from tests.memory.settings import MemoryArrivals, MemoryProcessReports, MemorySamples, MemorySettings, MemorySimulations
from tests.memory.views import MemoryListings, MemoryViews, MemoryVolunteerViews

__all__ = ["AllShards", "MemoryStore"]


class MemoryStore(store.memory.MemoryStore):
    """One attribute per port, named as in store.postgres.PostgresStore."""

    applications: MemoryApplications
    forecasts: MemoryForecasts
    generations: MemoryGenerations
    history: MemoryHistory
    insight: MemoryInsight
    ordering_rules: MemoryOrderingRules
    people: MemoryPeople
    settings: MemorySettings
    submissions: MemorySubmissions
    uploads: MemoryUploads
    views: MemoryViews
    volunteers: MemoryVolunteers

    def __init__(self) -> None:
        super().__init__()
        registry, work, book = self._registry, self._work, self._book
        self.trickles = MemoryTrickles()
        self.ledger = MemoryLedger(registry, work, self.trickles)
        self.applications = MemoryApplications(registry, work)
        self.forecasts = MemoryForecasts(registry, work)
        self.generations = MemoryGenerations(registry, work)
        self.history = MemoryHistory(registry, work)
        self.insight = MemoryInsight(registry, work)
        self.attention = MemoryAttention(registry, work, self.forecasts)
        self.people = MemoryPeople(registry, work, book)
        self.repeating = MemoryRepeating(registry, work, book)
        self.settings = MemorySettings(registry, work)
        self.submissions = MemorySubmissions(registry, work, book)
        self.uploads = MemoryUploads(registry, work)
        self.views = MemoryViews(registry, work)
        self.volunteers = MemoryVolunteers(registry, work)
        self.access = MemoryAccess(registry)
        self.restrictions = MemoryRestrictions(registry, work)
        self.participation = MemoryParticipation()
        self.arrivals = MemoryArrivals()
        self.volunteer_views = MemoryVolunteerViews(work)
        self.host_lists = MemoryHostLists(registry, work, self.generations)
        self.listings = MemoryListings(registry, work, self.forecasts)
        self.ordering_rules = MemoryOrderingRules(registry, work, book)
        self.process_reports = MemoryProcessReports()
        self.samples = MemorySamples(work)
        self.simulations = MemorySimulations()
        self.notifications = MemoryNotifications()

    async def close(self) -> None:
        """There is nothing to close."""
