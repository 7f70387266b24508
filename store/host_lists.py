"""Which hosts are slow, fail or are silent, and what was a host sent? In PostgreSQL, page by page, by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from domain.host_lists import (
    LOOKED_AT,
    RESULTS_LOOKED_AT,
    HostChoice,
    HostInstance,
    HostInstances,
    HostKind,
    HostList,
    HostPlace,
    ListedHost,
    RecentFailures,
    SlowWith,
)
from domain.jobs import InstanceState
from domain.units import HostId, Instant, Seconds, VolunteerId
from domain.volunteers import ResultPlace
from store import rows
from store.listings import LAST_HOST_ID, LAST_ID
from store.pool import Database

Entry = tuple[HostPlace, SlowWith | RecentFailures | None]  # of a list, and what it says besides the host


class PostgresHostLists:
    """Satisfies the console's HostLists."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = LOOKED_AT
    ) -> HostList:
        match choice.kind:
            case HostKind.ALL:
                return await self._page(await self._newest(choice.email, after, limit + 1), limit)
            case HostKind.SLOW:
                return await self._page(await self._slow(after, limit + 1), limit)
            case HostKind.FAILING:
                entries, since = await self._failing(choice.since, after, limit + 1, looked_at)
                return await self._page(entries, limit, since=since)
            case HostKind.SILENT:
                return await self._silent(choice.since, after, limit, looked_at)

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        found = await self._database.fetch("listed_hosts", list(host_ids))
        return {
            row["host_id"]: ListedHost(
                rows.host(row), row["in_progress"], row["n_valid"], row["n_error"], row["n_timeout"]
            )
            for row in found
        }

    async def instances(
        self,
        host_id: HostId,
        volunteer_id: VolunteerId,
        *,
        state: InstanceState | None,
        after: ResultPlace | None,
        limit: int,
        looked_at: int = RESULTS_LOOKED_AT,
    ) -> HostInstances:
        begin = (float("inf"), LAST_ID) if after is None else (after.sent_at, after.instance_id)
        looked = await self._database.fetch("results_looked_at", volunteer_id, *begin, looked_at - 1)
        is_end = len(looked) < 2  # that one, and one behind it
        end = (float("-inf"), 0) if is_end else (looked[0]["sent_at"], looked[0]["instance_id"])
        found = await self._database.fetch("instances_of_host", host_id, volunteer_id, *begin, *end, state, limit + 1)
        instances = [_instance(row) for row in found[:limit]]
        if len(found) > limit:
            return HostInstances(instances, ResultPlace(instances[-1].sent_at, instances[-1].instance_id))
        return HostInstances(instances, None if is_end else ResultPlace(*end))

    async def _newest(self, email: str, after: HostPlace | None, limit: int) -> list[Entry]:
        last = LAST_HOST_ID if after is None else after.host_id
        if email:
            found = await self._database.fetch("hosts_of_email", email.lower(), last, limit)
        else:
            found = await self._database.fetch("hosts_newest", last, limit)
        return [(HostPlace(row["host_id"]), None) for row in found]

    async def _slow(self, after: HostPlace | None, limit: int) -> list[Entry]:
        place = (-1.0, 0, 0) if after is None else (after.key, after.host_id, after.app_version_id)
        return [
            (
                HostPlace(row["host_id"], row["x"], row["app_version_id"]),
                SlowWith(row["app_version_id"], row["x"], row["relative"]),
            )
            for row in await self._database.fetch("slow_hosts", *place, limit)
        ]

    async def _failing(
        self, since: Instant, after: HostPlace | None, limit: int, looked_at: int
    ) -> tuple[list[Entry], Instant | None]:
        place = (LAST_ID, LAST_HOST_ID) if after is None else (int(after.key), after.host_id)
        found = await self._database.fetch("failing_hosts", since, looked_at, *place, limit)
        entries: list[Entry] = [
            (
                HostPlace(row["host_id"], float(row["failures"])),
                RecentFailures(row["errors"], row["invalid"], row["timed_out"], row["last_at"]),
            )
            for row in found
        ]
        return entries, found[0]["since"] if found and found[0]["looked_at"] == looked_at else None

    async def _silent(self, since: Instant, after: HostPlace | None, limit: int, looked_at: int) -> HostList:
        before = LAST_HOST_ID if after is None else after.host_id
        looked = await self._database.fetch("hosts_looked_at", before, looked_at - 1)
        is_end = len(looked) < 2  # that one, and one behind it
        last = HostId(0) if is_end else HostId(looked[0]["host_id"])
        found = await self._database.fetch("silent_hosts", before, last, since, limit + 1)
        page = await self._page([(HostPlace(row["host_id"]), None) for row in found], limit)
        return page if page.after or is_end else HostList(page.hosts, HostPlace(last))

    async def _page(self, entries: Sequence[Entry], limit: int, *, since: Instant | None = None) -> HostList:
        """Of entries that were asked for with one more."""
        shown = entries[:limit]
        hosts = await self.listed([place.host_id for place, _ in shown]) if shown else {}
        found = [told(hosts[place.host_id], said) for place, said in shown if place.host_id in hosts]
        return HostList(found, shown[-1][0] if len(entries) > limit else None, since)


def told(one: ListedHost, said: SlowWith | RecentFailures | None) -> ListedHost:
    """The host with what its list says of it."""
    slow = said if isinstance(said, SlowWith) else None
    failures = said if isinstance(said, RecentFailures) else None
    return ListedHost(one.host, one.in_progress, one.n_valid, one.n_error, one.n_timeout, slow, failures)


def _instance(row: asyncpg.Record) -> HostInstance:
    return HostInstance(
        row["instance_id"],
        row["job_id"],
        row["batch_id"],
        row["app_name"],
        InstanceState(row["state"]),
        row["sent_at"],
        row["due_at"],
        row["reported_at"],
        Seconds(row["est_runtime_s"] or 0.0),
        row["elapsed_s"],
        row["tight"],
        row["reason"] or "",
    )
