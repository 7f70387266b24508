"""What operators ask about hosts that call and work that waits, over the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from domain.apps import CPU, App, AppVersion, spread_of
from domain.batches import BatchState
from domain.dispatch import RequestKey
from domain.errors import NotFoundError
from domain.hosts import Host
from domain.insight import (
    LEAST_INTERVAL_S,
    MOST_SHORT_HOSTS,
    MOST_SHORT_JOBS,
    SILENT_INTERVALS,
    STANDING_FIELDS,
    Caller,
    HostSample,
    JobSize,
    Newcomers,
    RecentHost,
    SentTerms,
    Short,
    WaitingBatch,
    WorkAhead,
    calls_per_hour,
)
from domain.jobs import InstanceState
from domain.units import HOUR_S, BatchId, Flop, HostId, InstanceId, Instant
from store.binary_copy import Table, native_dtype
from store.memory.host_columns import HAV_COLUMNS
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost, StoredInstance, StoredJob
from store.memory.work import Work

STILL_OF_USE = frozenset(
    (InstanceState.IN_PROGRESS, InstanceState.REPORTED, InstanceState.INCONCLUSIVE, InstanceState.VALID)
)
SAME = {name for name, _ in HAV_COLUMNS}


class MemoryInsight:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]:
        found = []
        for versions in groups:
            rows = self._work.host_columns.of_versions({version.app_version_id for version in versions})
            table = _standings(rows[rows["last_rpc_at"] >= active_since], now)
            found.append((table, self._newcomers(versions, active_since, now)))
        return found

    def _newcomers(self, versions: Sequence[AppVersion], active_since: Instant, now: Instant) -> Newcomers:
        ids = {version.app_version_id for version in versions}
        platforms = {version.platform for version in versions}
        kind = versions[0].processor_type
        rates = [
            _calls_per_hour(stored, now)
            for stored in self._work.hosts.values()
            if ids.isdisjoint(stored.havs)  # of nearly all hosts nothing else is looked at
            and stored.host.last_rpc_at >= active_since
            and not platforms.isdisjoint(stored.host.platforms)
            and (kind == CPU or any(gpu.type == kind for gpu in stored.host.coprocessors))
        ]
        return Newcomers(len(rates), sum(rates))

    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        latest = sorted(self._work.hosts.values(), key=lambda one: (-one.host.last_rpc_at, -one.host.host_id))
        return [self._caller(stored) for stored in latest[:limit]]

    async def caller(self, host_id: HostId) -> Caller:
        stored = self._work.hosts.get(host_id)
        if stored is None:
            raise NotFoundError("host", host_id)
        return self._caller(stored)

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        return [_waiting(self._work.batches[batch_id]) for _, _, batch_id in self._work.ready[:limit]]

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]:
        wanted = (self._work.batches.get(batch_id) for batch_id in sorted(set(batch_ids)))
        judged = {batch.batch_id: self._short(batch, active_since) for batch in wanted if batch is not None}
        return {batch_id: short for batch_id, short in judged.items() if short is not None}

    def _short(self, batch: StoredBatch, active_since: Instant) -> Short | None:
        app = self._registry.apps[batch.new.app_id]
        versions = self._registry.versions.values()
        platforms = {one.platform for one in versions if one.app_id == app.app_id and not one.deprecated}
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
        """The first urgent instances that wait, retries first."""
        ids = sorted(batch.waiting.urgent)[:MOST_SHORT_JOBS]
        found = [self._work.instance(instance_id) for _, instance_id in ids]
        return [row for row in found if row is not None]

    async def work_ahead(self, batch_id: BatchId) -> WorkAhead:
        this = self._work.batches.get(batch_id)
        if this is None:
            return WorkAhead()
        ahead = [self._work.batches[other[2]] for other in self._work.ready if other < this.order]
        return WorkAhead(len(ahead), sum(batch.counts.unsent for batch in ahead))

    async def sampled_hosts(self, limit: int, *, active_since: Instant) -> HostSample:
        active = sorted(self._active(active_since), key=lambda one: _drawn_by(one.host.host_id))
        sampled = sorted(active[:limit], key=lambda one: one.host.host_id)
        return HostSample(tuple(_recent(stored) for stored in sampled), len(active))

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]:
        wanted = (self._work.batches.get(batch_id) for batch_id in sorted(set(batch_ids)))
        return {batch.batch_id: _job_size(batch) for batch in wanted if batch is not None}

    async def terms(self, instance_id: InstanceId) -> SentTerms:
        row = self._work.instance_of_any_age(instance_id)
        if row is None:
            raise NotFoundError("instance", instance_id)
        return SentTerms(
            row.instance_id,
            row.job.job_id,
            row.job.batch.batch_id,
            row.volunteer_id,
            row.app_version_id,
            row.timeout_at,
            row.turnaround_sample,
            row.copied_because,
        )

    def _active(self, active_since: Instant) -> Iterator[StoredHost]:
        return (stored for stored in self._work.hosts.values() if stored.host.last_rpc_at >= active_since)

    def _caller(self, stored: StoredHost) -> Caller:
        host = stored.host
        credentials = self._registry.volunteers[host.volunteer_id].credentials
        key = RequestKey(credentials.authenticator_hash, host.host_id, host.host_cpid)
        return Caller(host.host_id, key, host.last_rpc_at, stored.rpc_interval_s)


def _needs_another(job: StoredJob, app: App, callers: Sequence[Host]) -> bool:
    """Whether a job lacks a result that none of these may bring."""
    agreeing = max(job.job_class.quorum, app.adaptive_copies, job.copies)
    spread = spread_of(app.one_per_volunteer, one_per_host=app.one_per_host, agreeing=agreeing)
    sent = [row for row in job.instances if row.host_id is not None]
    if sum(row.state in STILL_OF_USE for row in sent) >= agreeing or spread.one_per is None:
        return False
    if spread.per_volunteer:
        return {host.volunteer_id for host in callers} <= {row.volunteer_id for row in sent}
    return {host.host_id for host in callers} <= {row.host_id for row in sent}


def _calls_per_hour(stored: StoredHost, now: Instant) -> float:
    return calls_per_hour(stored.rpc_interval_s, stored.host.last_rpc_at, now)


def _standings(rows: Table, now: Instant) -> Table:
    """STANDING_FIELDS of these HAV_COLUMNS; calls per hour as domain.insight has them."""
    table = np.empty(rows.size, native_dtype(STANDING_FIELDS))
    for name, _ in STANDING_FIELDS:
        if name in SAME:
            table[name] = rows[name]
    silence_s = now - rows["last_rpc_at"]
    believed_s = np.maximum(np.maximum(rows["rpc_interval_s"], silence_s / SILENT_INTERVALS), LEAST_INTERVAL_S)
    table["calls_per_hour"] = np.where(np.isnan(rows["rpc_interval_s"]), 0.0, HOUR_S / believed_s)
    return table


def _waiting(batch: StoredBatch) -> WaitingBatch:
    retries = [-minus_retries for minus_retries, _ in batch.waiting.urgent if minus_retries != 0]
    least_s, most_quorum = min(one.delay_bound_s for one in batch.classes), max(one.quorum for one in batch.classes)
    return WaitingBatch(batch.as_batch(), len(retries), least_s, most_quorum, max(retries, default=0))


def _drawn_by(host_id: HostId) -> tuple[str, HostId]:
    """What a sample is drawn by: nothing of the host but its id."""
    return hashlib.md5(str(host_id).encode(), usedforsecurity=False).hexdigest(), host_id


def _recent(stored: StoredHost) -> RecentHost:
    havs = tuple(stored.havs[version_id] for version_id in sorted(stored.havs))
    return RecentHost(stored.host, stored.rpc_interval_s, havs)


def _job_size(batch: StoredBatch) -> JobSize:
    classes = batch.classes
    quorum = max(one.quorum for one in classes)
    return JobSize(
        Flop(batch.new.batch_flop / (batch.new.jobs_total * quorum)),
        max(one.memory_bytes for one in classes),
        max(one.ncpus for one in classes),
        quorum,
    )
