"""Which hosts are slow, fail or are silent, and what was a host sent? Over the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp

from domain.host_lists import (
    FAILED,
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
from domain.units import AppVersionId, HostId, InstanceId, Instant, Seconds, VolunteerId
from domain.volunteers import ResultPlace
from store.memory.percentiles import MemoryGenerations
from store.memory.registry import Registry
from store.memory.rows import StoredInstance
from store.memory.work import Work

SLOWEST = 0.1
NOT_OVER = (InstanceState.UNSENT, InstanceState.IN_PROGRESS, InstanceState.CANCELLED)


class MemoryHostLists:
    def __init__(self, registry: Registry, work: Work, generations: MemoryGenerations) -> None:
        self._registry = registry
        self._work = work
        self._generations = generations

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = LOOKED_AT
    ) -> HostList:
        match choice.kind:
            case HostKind.ALL:
                return self._newest(choice.email, after, limit)
            case HostKind.SLOW:
                return self._slow(after, limit)
            case HostKind.FAILING:
                return self._failing(choice.since, after, limit, looked_at)
            case HostKind.SILENT:
                return self._silent(choice.since, after, limit, looked_at)

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        return {host_id: self._listed(host_id) for host_id in host_ids if host_id in self._work.hosts}

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
        sent = [row for row in self._busy() if row.volunteer_id == volunteer_id]
        sent = sorted((row for row in sent if after is None or _place(row) < _key(after)), key=_place, reverse=True)
        over = [row for row in sent if row.state not in NOT_OVER]
        end = None if len(over) <= looked_at else _place(over[looked_at - 1])
        chosen = [
            row
            for row in sent
            if row.host_id == host_id and state in (None, row.state) and (end is None or _place(row) >= end)
        ]
        shown = [_instance(row) for row in chosen[:limit]]
        if len(chosen) > limit:
            return HostInstances(shown, ResultPlace(shown[-1].sent_at, shown[-1].instance_id))
        return HostInstances(shown, None if end is None else ResultPlace(*end))

    def _newest(self, email: str, after: HostPlace | None, limit: int) -> HostList:
        owner = self._registry.volunteer_ids_by_email.get(email.lower())
        every = self._before(after)
        ids = [one for one in every if not email or self._work.hosts[one].host.volunteer_id == owner]
        shown = ids[:limit]
        return HostList([self._listed(one) for one in shown], HostPlace(shown[-1]) if len(ids) > limit else None)

    def _slow(self, after: HostPlace | None, limit: int) -> HostList:
        slow = sorted(
            (one.x, one.host_id, one.app_version_id)
            for one in self._generations.latest()
            if one.x is not None and one.x < SLOWEST
        )
        start = None if after is None else (after.key, after.host_id, after.app_version_id)
        found = [one for one in slow if start is None or one > start]
        shown = found[:limit]
        hosts = [
            replace(self._listed(host_id), slow=SlowWith(version_id, x, self._relative(host_id, version_id)))
            for x, host_id, version_id in shown
        ]
        more = len(found) > limit
        return HostList(hosts, HostPlace(shown[-1][1], shown[-1][0], shown[-1][2]) if more else None)

    def _relative(self, host_id: HostId, app_version_id: AppVersionId) -> float | None:
        hav = self._work.hosts[host_id].havs.get(app_version_id)
        return None if hav is None or hav.relaxed.n <= 0 else exp(hav.relaxed.mean)

    def _failing(self, since: Instant, after: HostPlace | None, limit: int, looked_at: int) -> HostList:
        failed = [(_failed_at(row), row.instance_id, row) for row in self._busy() if row.state in FAILED]
        last = sorted((one for one in failed if one[0] >= since), key=lambda one: one[:2], reverse=True)[:looked_at]
        by_host: defaultdict[HostId, list[tuple[Instant, InstanceState]]] = defaultdict(list)
        for at, _, row in last:
            assert row.host_id is not None
            by_host[row.host_id].append((at, row.state))
        start = None if after is None else (int(after.key), after.host_id)
        keys = sorted(((len(by_host[one]), one) for one in by_host), reverse=True)
        found = [one for one in keys if start is None or one < start]
        shown = [replace(self._listed(one), failures=_failures(by_host[one])) for _, one in found[:limit]]
        place = HostPlace(found[limit - 1][1], float(found[limit - 1][0])) if len(found) > limit else None
        return HostList(shown, place, last[-1][0] if shown and len(last) == looked_at else None)

    def _silent(self, since: Instant, after: HostPlace | None, limit: int, looked_at: int) -> HostList:
        every = self._before(after)
        looked = every[:looked_at]
        ids = [one for one in looked if self._work.hosts[one].host.last_rpc_at < since]
        end = HostPlace(looked[-1]) if len(every) > looked_at else None
        shown = [self._listed(one) for one in ids[:limit]]
        return HostList(shown, HostPlace(ids[limit - 1]) if len(ids) > limit else end)

    def _before(self, after: HostPlace | None) -> list[HostId]:
        return sorted((one for one in self._work.hosts if after is None or one < after.host_id), reverse=True)

    def _busy(self) -> list[StoredInstance]:
        """Instances that were sent, but for those of the history."""
        jobs = (job for job in self._work.jobs if job.job_id not in self._work.history)
        return [row for job in jobs for row in job.instances if row.sent_at is not None]

    def _listed(self, host_id: HostId) -> ListedHost:
        stored = self._work.hosts[host_id]
        havs = stored.havs.values()
        return ListedHost(
            stored.host,
            len(stored.held),
            sum(one.n_valid for one in havs),
            sum(one.n_error for one in havs),
            sum(one.n_timeout for one in havs),
        )


def _failed_at(row: StoredInstance) -> Instant:
    at = row.timeout_at if row.reported_at is None else row.reported_at
    assert at is not None
    return at


def _failures(some: Sequence[tuple[Instant, InstanceState]]) -> RecentFailures:
    errors, invalid, timed_out = (sum(state is kind for _, state in some) for kind in FAILED)
    return RecentFailures(errors, invalid, timed_out, max(at for at, _ in some))


def _key(place: ResultPlace) -> tuple[float, int]:
    return place.sent_at, place.instance_id


def _place(row: StoredInstance) -> tuple[Instant, InstanceId]:
    assert row.sent_at is not None
    return row.sent_at, row.instance_id


def _instance(row: StoredInstance) -> HostInstance:
    assert row.sent_at is not None
    assert row.due_at is not None
    batch = row.job.batch
    return HostInstance(
        row.instance_id,
        row.job.job_id,
        batch.batch_id,
        batch.app_name,
        row.state,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.est_runtime_s or Seconds(0.0),
        row.elapsed_s,
        row.tight,
        row.reason,
    )
