"""Reads the facts and returns what needs attention, for the console, the API and the metrics. Read-only."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from administration.access.who import Person
from administration.attention.item import HALF, AttentionFacts, AttentionKind, Item, counts_of, item_as_json
from administration.attention.items import HOST_RESULTS, items_of
from administration.heartbeats import FORGOTTEN_S, SILENT_S
from administration.ordering.places import expedite_helps, sent_first
from administration.stopped import Stopped, unrunnable_of
from administration.unschedulable import by_batch, refused_lately
from domain.attention import (
    FAILED_FRACTION,
    FAILED_JOBS,
    FAILURES,
    FailingApp,
    FailingHost,
    FailingVersion,
    HostContacts,
    by_app,
    worst_first,
)
from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.host_lists import HostChoice, HostKind, HostList, HostPlace
from domain.insight import SILENT_INTERVALS, Short
from domain.restrictions import Restrictions
from domain.settings import Settings
from domain.units import DAY_S, BatchId, Instant, Seconds, SubmitterId, later
from domain.views import BatchChoice, BatchSort
from muster_client import shapes
from store.postgres import PostgresStore

Value = TypeVar("Value")

MOST_BATCHES = 200  # batches of which the items are shown, and batches in order whose hosts are counted
MOST_HOSTS = 1000  # failing hosts that are counted
KEPT_S = Seconds(60.0)  # how long the facts that read many rows are kept
PLATFORMS_S = Seconds(600.0)  # how long the platforms of hosts are kept, which change slowly and read all hosts
ATTEMPTS = 2  # comparisons of a job, from which they count as failing


@dataclass(frozen=True, slots=True)
class Attention:
    """The items, worst first. `left_out` batches that are late, failing or without a version are not among them.
    `stopped`: why nothing of some batches is sent. `failing`: the versions that fail on many hosts.
    """

    computed_at: Instant
    items: Sequence[Item]
    left_out: int
    stopped: Stopped
    failing: Sequence[FailingVersion]
    backup_at: Instant | None = None  # the last recorded backup

    def of(self, submitter_id: SubmitterId) -> Attention:
        """Return the items about the batches of one submitter."""
        return replace(self, items=[one for one in self.items if one.submitter_id == submitter_id], left_out=0)

    @property
    def batch_ids(self) -> frozenset[BatchId]:
        return frozenset(one.batch_id for one in self.items if one.batch_id is not None)

    @property
    def counts(self) -> Mapping[AttentionKind, int]:
        return counts_of(self.items)


@dataclass(frozen=True, slots=True)
class _Slow:
    """Facts about all hosts."""

    versions: Sequence[FailingVersion]
    hosts: Sequence[FailingHost]
    contacts: HostContacts
    short: Mapping[BatchId, Short]


class _Kept(Generic[Value]):
    """Facts that are read again after `age_s`, or when `rules` change. Concurrent callers share one reading, and its
    failure; the next caller after a failure reads again.
    """

    def __init__(self, age_s: Seconds) -> None:
        self._age_s = age_s
        self._last: tuple[Instant, object, asyncio.Future[Value]] | None = None

    async def value(self, now: Instant, read: Callable[[], Awaitable[Value]], rules: object = None) -> Value:
        last = self._last
        if last is None or abs(now - last[0]) >= self._age_s or last[1] != rules or _has_failed(last[2]):
            last = self._last = now, rules, asyncio.ensure_future(read())
        return await asyncio.shield(last[2])  # a caller that is cancelled does not end the reading for others


def _has_failed(reading: asyncio.Future[Value]) -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)


async def _failing(store: PostgresStore, now: Instant) -> tuple[Sequence[FailingVersion], Sequence[FailingHost]]:
    """Return the versions that fail on many of the hosts that used them in the last day, the worst first, and the hosts
    that are not banned and at least half of whose results of the last day failed. Hosts are not judged by results of
    versions that fail on at least half of their hosts, also after these were withdrawn; otherwise the hosts may be the
    cause.
    """
    since = later(now, -DAY_S)
    versions = await store.attention.versions(since=since, failures=FAILURES)
    hosts = await store.attention.hosts(
        since=since,
        results=HOST_RESULTS,
        failing_fraction=HALF,
        without=[one.app_version_id for one in versions if one.is_failing and one.failing >= HALF * one.hosts],
        limit=MOST_HOSTS,
    )
    return worst_first(versions), hosts


class AttentionViews:
    """What needs attention. Facts about all hosts are up to a minute old; a ban, pause or withdrawal renews them."""

    def __init__(self, store: PostgresStore, settings: Callable[[], Settings], clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._slow = _Kept[_Slow](KEPT_S)
        self._platforms = _Kept[Mapping[tuple[str, ...], int]](PLATFORMS_S)

    async def now(self) -> Attention:
        """Return what needs attention now."""
        store, now = self._store, self._clock.now()
        need = await store.attention.batches(
            now=now, failed=FAILED_JOBS, failed_fraction=FAILED_FRACTION, limit=MOST_BATCHES
        )
        batches = await store.views.batches_with(need.batch_ids) if need.batch_ids else []
        restrictions = await self._restrictions()
        catalogue = await store.applications.load_catalogue()
        slow = await self._of_hosts(restrictions, catalogue)
        processes = await store.process_reports.since(later(now, -SILENT_S))
        judging = [one for one in processes if one.kind == "background"]
        refused = await refused_lately(store, self._clock, judging)
        is_down = await store.settings.project_pause() is not None
        unrunnable = unrunnable_of(refused.groups, refused.batches.values())
        stopped = Stopped(by_batch(refused.groups), restrictions, is_down, refused.lost, unrunnable)
        culprits = {one.batch_id for one in by_app(slow.versions).values() if one.batch_id is not None}
        others = sorted((slow.short.keys() | culprits) - refused.batches.keys())
        known = {
            **refused.batches,
            **{one.batch_id: one for one in (await store.views.batches_with(others) if others else ())},
        }
        first = await sent_first(store, catalogue, now, unrunnable) if batches else {}
        fresh = await store.ordering_rules.with_fresh(need.batch_ids) if batches else ()
        facts = AttentionFacts(
            now,
            batches,
            await store.forecasts.last(need.batch_ids) if need.batch_ids else {},
            slow.short,
            stopped,
            known,
            processes,
            await store.process_reports.duty_deadlines(later(now, -FORGOTTEN_S)),
            slow.versions,
            slow.hosts,
            slow.contacts,
            await store.attention.upkeep(attempts=ATTEMPTS),
            self._settings().storage.backup_age_s,
            {one.batch_id for one in batches if one.batch_id not in fresh},
            {one.batch_id: expedite_helps(one, first) for one in batches if one.batch_id in first},
            catalogue.current,
        )
        left_out = need.found - len(need.batch_ids) + refused.left_out
        return Attention(now, items_of(facts), left_out, stopped, slow.versions, facts.upkeep.backup_at)

    async def shown(self, person: Person) -> shapes.AttentionShown:
        """Return it as JSON, with the remedies that the user may apply."""
        found = await self.now()
        return {
            "computed_at": found.computed_at,
            "counts": {kind.value: count for kind, count in found.counts.items()},
            "left_out": found.left_out,
            "items": [item_as_json(one, person) for one in found.items],
        }

    async def failing_versions(self, restrictions: Restrictions) -> Sequence[FailingVersion]:
        """Return the versions that fail on many hosts, the worst first. `restrictions`: those in force."""
        return (await self._of_hosts(restrictions)).versions

    async def failing_apps(self) -> Mapping[str, FailingApp]:
        """Return the apps with failing versions, by name."""
        return by_app(await self.failing_versions(await self._restrictions()))

    async def failing_hosts(self) -> Sequence[FailingHost]:
        """Return the hosts at least half of whose results fail, the worst first."""
        return (await self._of_hosts(await self._restrictions())).hosts

    async def hosts(self, choice: HostChoice, *, after: HostPlace | None, limit: int) -> HostList:
        """Return a page of a list of hosts. The failing ones are `failing_hosts`."""
        lists = self._store.host_lists
        if choice.kind is not HostKind.FAILING:
            return await lists.hosts(choice, after=after, limit=limit)
        failing, begin = await self.failing_hosts(), 0 if after is None else max(0, int(after.key))
        some, end = failing[begin : begin + limit], begin + limit
        listed = await lists.listed([one.host_id for one in some])
        found = [replace(listed[one.host_id], failures=one) for one in some if one.host_id in listed]
        return HostList(found, HostPlace(some[-1].host_id, float(end)) if end < len(failing) else None)

    async def _restrictions(self) -> Restrictions:
        return {(one.kind, one.name): one for one in await self._store.restrictions.restrictions()}

    async def platforms(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of active hosts by the platforms that they report. It is up to ten minutes old."""
        now = self._clock.now()

        async def read() -> Mapping[tuple[str, ...], int]:
            found = Counter[tuple[str, ...]]()
            for one in await self._store.reserving.alike_hosts(active_since=self._active_since(now)):
                found[tuple(one.platforms)] += one.hosts
            return found

        return await self._platforms.value(now, read)

    async def _of_hosts(self, restrictions: Restrictions, catalogue: Catalogue | None = None) -> _Slow:
        """Return the facts about all hosts. New bans, pauses and versions for new work renew them."""
        store, now = self._store, self._clock.now()
        catalogue = catalogue or await store.applications.load_catalogue()

        async def read() -> _Slow:
            active = BatchChoice(state=BatchState.ACTIVE)
            first = await store.listings.batches(active, BatchSort.ORDER, after=None, limit=MOST_BATCHES)
            ids = [one.batch.batch_id for one in first]
            return _Slow(
                *await _failing(store, now),
                await store.attention.contacts(
                    now=now, since=later(now, -7 * DAY_S), silence_s=DAY_S, intervals=SILENT_INTERVALS
                ),
                await store.insight.short(ids, active_since=self._active_since(now)) if ids else {},
            )

        return await self._slow.value(now, read, (restrictions, catalogue.current))

    def _active_since(self, now: Instant) -> Instant:
        return later(now, -self._settings().ranking.active_s)
