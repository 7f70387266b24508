"""Operators' queries about hosts, callers and batches, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp

import numpy as np

import store.memory.percentiles
import store.memory.waiting
from domain.apps import App, VersionState, spread_of
from domain.batches import BatchState
from domain.credit import NO_CREDIT, CreditKind
from domain.dispatch import RequestKey
from domain.errors import NotFoundError
from domain.host_lists import (
    LOOKED_AT,
    RESULTS_LOOKED_AT,
    HostChoice,
    HostInstance,
    HostInstances,
    HostKind,
    HostList,
    HostPlace,
    HostSort,
    ListedHost,
    SlowWith,
)
from domain.hosts import Host
from domain.insight import (
    MOST_SHORT_HOSTS,
    MOST_SHORT_JOBS,
    Caller,
    HostSample,
    JobSize,
    RecentHost,
    RecentInstance,
    Short,
)
from domain.jobs import InstanceState
from domain.ranking import PERCENTILE_FIELDS, StoredPercentile
from domain.restrictions import limit_of
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, Seconds, VolunteerId
from domain.volunteers import ResultPlace
from lifecycle.states import NO_RESULT, SENT_OF_USE
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost, StoredInstance, StoredJob
from store.memory.work import Work

SLOWEST = 0.1


class MemoryInsight(store.memory.waiting.MemoryInsight):
    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        latest = sorted(self._work.hosts.values(), key=lambda one: (-one.host.last_rpc_at, -one.host.host_id))
        return [self._caller(stored) for stored in latest[:limit]]

    async def active_callers(self, limit: int, *, active_since: Instant) -> tuple[Sequence[Caller], int]:
        active = [one for one in self._work.hosts.values() if one.host.last_rpc_at >= active_since]
        return [self._caller(stored) for stored in active[:limit]], len(active)

    async def caller(self, host_id: HostId) -> Caller:
        stored = self._work.hosts.get(host_id)
        if stored is None:
            raise NotFoundError("host", host_id)
        return self._caller(stored)

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]:
        wanted = (self._work.batches.get(batch_id) for batch_id in sorted(set(batch_ids)))
        judged = {batch.batch_id: self._short(batch, active_since) for batch in wanted if batch is not None}
        return {batch_id: short for batch_id, short in judged.items() if short is not None}

    def _short(self, batch: StoredBatch, active_since: Instant) -> Short | None:
        app = self._registry.apps[batch.new.app_id]
        versions = self._registry.versions.values()
        platforms = {one.platform for one in versions if one.app_id == app.app_id and one.state is VersionState.OFFERED}
        callers = [one.host for one in self._active(active_since) if not platforms.isdisjoint(one.host.platforms)]
        agreeing = max(app.adaptive_copies, *(one.quorum for one in batch.classes))
        one_per = spread_of(app.one_per_volunteer, one_per_host=app.one_per_host, agreeing=agreeing).one_per
        if batch.state is not BatchState.ACTIVE or not 0 < len(callers) < MOST_SHORT_HOSTS or one_per is None:
            return None
        jobs = {row.job.job_id: row.job for row in self._urgent(batch)}
        jobs_waiting = sum(_needs_another(job, app, callers) for job in jobs.values())
        hosts, volunteers = len(callers), len({host.volunteer_id for host in callers})
        if jobs_waiting == 0 and agreeing <= (volunteers if one_per == "volunteer" else hosts):
            return None
        return Short(one_per, agreeing, jobs_waiting, hosts, volunteers)

    def _urgent(self, batch: StoredBatch) -> list[StoredInstance]:
        """Return the first urgent unsent instances, retries first."""
        ids = sorted(batch.waiting.urgent)[:MOST_SHORT_JOBS]
        found = [self._work.instance(instance_id) for _, instance_id in ids]
        return [row for row in found if row is not None]

    async def sampled_hosts(self, limit: int, *, active_since: Instant, most_held: int = 0) -> HostSample:
        active = sorted(self._active(active_since), key=lambda one: _drawn_by(one.host.host_id))
        sampled = sorted(active[:limit], key=lambda one: one.host.host_id)
        hosts = []
        for stored in sampled:
            hosts.append(_recent(stored, most_held))
            most_held -= len(hosts[-1].held)
        return HostSample(tuple(hosts), len(active))

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]:
        wanted = (self._work.batches.get(batch_id) for batch_id in sorted(set(batch_ids)))
        return {batch.batch_id: _job_size(batch) for batch in wanted if batch is not None}

    def _active(self, active_since: Instant) -> Iterator[StoredHost]:
        return (stored for stored in self._work.hosts.values() if stored.host.last_rpc_at >= active_since)

    def _caller(self, stored: StoredHost) -> Caller:
        host = stored.host
        credentials = self._registry.volunteers[host.volunteer_id].credentials
        key = RequestKey(credentials.authenticator_hash, host.host_id, host.host_cpid)
        return Caller(host.host_id, key, host.last_rpc_at, stored.rpc_interval_s)


def _needs_another(job: StoredJob, app: App, callers: Sequence[Host]) -> bool:
    """Return whether a job lacks a result that none of these can supply."""
    agreeing = max(job.job_class.quorum, app.adaptive_copies, job.copies)
    spread = spread_of(app.one_per_volunteer, one_per_host=app.one_per_host, agreeing=agreeing)
    sent = [row for row in job.instances if row.host_id is not None]
    if sum(row.state in SENT_OF_USE for row in sent) >= agreeing or spread.one_per is None:
        return False
    if spread.per_volunteer:
        return {host.volunteer_id for host in callers} <= {row.volunteer_id for row in sent}
    return {host.host_id for host in callers} <= {row.host_id for row in sent}


def _drawn_by(host_id: HostId) -> tuple[str, HostId]:
    """Return the key of the random sample: it depends only on the host's id."""
    return hashlib.md5(str(host_id).encode(), usedforsecurity=False).hexdigest(), host_id


def _recent(stored: StoredHost, most_held: int) -> RecentHost:
    havs = tuple(stored.havs[version_id] for version_id in sorted(stored.havs))
    rows = sorted((row.as_held for row in stored.held.values()), key=lambda one: (one.sent_at, one.instance_id))
    held = tuple(RecentInstance(one.batch_id, one.app_version_id, one.sent_at, one.due_at) for one in rows[:most_held])
    return RecentHost(stored.host, stored.rpc_interval_s, havs, held)


def _job_size(batch: StoredBatch) -> JobSize:
    classes = batch.classes
    return JobSize(
        batch.instance_flop,
        max(one.memory_bytes for one in classes),
        max(one.ncpus for one in classes),
        max(one.quorum for one in classes),
    )


def _key_of(listed: ListedHost, sort: HostSort) -> float:
    host = listed.host
    match sort.key:
        case "in_progress":
            return listed.in_progress
        case "valid":
            return listed.n_valid
        case "failed":
            return listed.n_error + listed.n_timeout
        case "last_contact":
            return host.last_rpc_at
        case "cpus":
            return host.ncpus * host.flop_per_s
        case "memory":
            return host.ram_bytes
        case "availability":
            return host.cpu_availability_fraction
        case _:
            return 0.0


class MemoryGenerations(store.memory.percentiles.MemoryGenerations):
    async def percentiles_of(self, host_id: HostId) -> Sequence[StoredPercentile]:
        return sorted(self.latest(host_id), key=lambda one: one.app_version_id)

    def latest(self, of_host: HostId | None = None) -> list[StoredPercentile]:
        """Return the last full run's rows for one host, or for all."""
        latest = next((one for one in reversed(self._generations) if one.full), None)
        found: list[StoredPercentile] = []
        for table in latest.percentiles if latest is not None else []:
            assert table.dtype.names == tuple(name for name, _ in PERCENTILE_FIELDS)
            chosen = table if of_host is None else table[table["host_id"] == of_host]
            for host_id, version_id, p, x, y in chosen.tolist():
                found.append(StoredPercentile(host_id, AppVersionId(version_id), p, _known(x), _known(y)))
        return found


def _known(number: float) -> float | None:
    return None if np.isnan(number) else number


class MemoryHostLists:
    def __init__(self, registry: Registry, work: Work, generations: MemoryGenerations) -> None:
        self._registry = registry
        self._work = work
        self._generations = generations

    async def hosts(
        self, choice: HostChoice, *, after: HostPlace | None, limit: int, looked_at: int = LOOKED_AT
    ) -> HostList:
        match choice.kind:
            case HostKind.ALL | HostKind.WITHOUT_WORK | HostKind.SILENT:
                return self._selected(choice, after, limit, looked_at)
            case HostKind.SLOW:
                return self._slow(after, limit)
            case HostKind.FAILING:
                raise ValueError("failing hosts are listed by AttentionViews")
            case HostKind.RESTRICTED:
                return self._restricted(after, limit)

    async def listed(self, host_ids: Sequence[HostId]) -> Mapping[HostId, ListedHost]:
        return {host_id: self._listed(host_id) for host_id in host_ids if host_id in self._work.hosts}

    async def names(self, host_ids: Sequence[HostId]) -> Mapping[HostId, str]:
        return {host_id: one.host.domain_name for host_id, one in (await self.listed(host_ids)).items()}

    async def named(self, name: str, *, limit: int) -> Sequence[HostId]:
        hosts = sorted(self._work.hosts.items())
        return [host_id for host_id, one in hosts if one.host.domain_name.lower() == name.lower()][:limit]

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
        over = [row for row in sent if row.state not in NO_RESULT]
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

    def _restricted(self, after: HostPlace | None, limit: int) -> HostList:
        hosts, restrictions = self._work.hosts, self._registry.restrictions
        ids = [one for one in self._before(after) if limit_of(restrictions, hosts[one].host) is not None]
        shown = [self._listed(one) for one in ids[:limit]]
        return HostList(shown, HostPlace(ids[limit - 1]) if len(ids) > limit else None)

    def _slow(self, after: HostPlace | None, limit: int) -> HostList:
        slow = sorted(
            (one.x, one.host_id, one.app_version_id)
            for one in self._generations.latest()
            if one.x is not None and one.x < SLOWEST
        )
        start = None if after is None else (after.key, after.host_id, after.second)
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

    def _selected(self, choice: HostChoice, after: HostPlace | None, limit: int, looked_at: int) -> HostList:
        if choice.text or choice.sort is not HostSort.NEWEST:
            return self._sorted(choice, after, limit)
        every = self._before(after)
        bounded = not choice.email and (choice.kind is not HostKind.ALL or choice.platform or choice.label)
        looked = every[:looked_at] if bounded else every
        ids = [one for one in looked if self._is_selected(self._work.hosts[one].host, choice)]
        end = HostPlace(looked[-1]) if len(every) > len(looked) else None
        shown = [self._listed(one) for one in ids[:limit]]
        return HostList(shown, HostPlace(ids[limit - 1]) if len(ids) > limit else end)

    def _sorted(self, choice: HostChoice, after: HostPlace | None, limit: int) -> HostList:
        sign, hosts = choice.sort.sign, [one.host for one in self._work.hosts.values()]
        placed = sorted(
            (sign * _key_of(self._listed(one.host_id), choice.sort), sign * one.host_id)
            for one in hosts
            if self._is_selected(one, choice)
        )
        found = [
            HostPlace(HostId(sign * place), key)
            for key, place in placed
            if after is None or (key, place) > (after.key, sign * after.host_id)
        ]
        shown = [self._listed(one.host_id) for one in found[:limit]]
        return HostList(shown, found[limit - 1] if len(found) > limit else None)

    def _is_selected(self, host: Host, choice: HostChoice) -> bool:
        by_email, text = self._registry.volunteer_ids_by_email, choice.text.lower()
        named = f"{host.domain_name}\n{self._registry.volunteers[host.volunteer_id].volunteer.name}".lower()
        return (
            (not choice.email or host.volunteer_id == by_email.get(choice.email.lower()))
            and (not text or text in named or host.volunteer_id == by_email.get(text))
            and (choice.kind is not HostKind.SILENT or host.last_rpc_at < choice.since)
            and (choice.kind is not HostKind.WITHOUT_WORK or self._has_none(host, choice.since))
            and choice.platform.lower() in " ".join(host.platforms).lower()
            and (not choice.label or choice.label in host.labels)
        )

    def _has_none(self, host: Host, since: Instant) -> bool:
        return host.last_rpc_at >= since and not self._work.hosts[host.host_id].held

    def _before(self, after: HostPlace | None) -> list[HostId]:
        return sorted((one for one in self._work.hosts if after is None or one < after.host_id), reverse=True)

    def _busy(self) -> list[StoredInstance]:
        """Return sent instances, except those of the history."""
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
            self._work.credit.get((CreditKind.HOST, host_id), NO_CREDIT),
            refused=stored.refused if (stored.refused_at or 0.0) >= stored.host.last_rpc_at else (),
        )


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
        row.credit,
    )
