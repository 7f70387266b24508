"""What operators ask about hosts that call and work that waits, over the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from domain.apps import CPU, AppVersion
from domain.dispatch import RequestKey
from domain.errors import NotFoundError
from domain.insight import (
    LEAST_INTERVAL_S,
    SILENT_INTERVALS,
    STANDING_FIELDS,
    Caller,
    HostSample,
    JobSize,
    Newcomers,
    RecentHost,
    SentTerms,
    WaitingBatch,
    WorkAhead,
    calls_per_hour,
)
from domain.units import HOUR_S, BatchId, Flop, HostId, InstanceId, Instant
from store.binary_copy import Table, native_dtype
from store.memory.host_columns import HAV_COLUMNS
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost
from store.memory.work import Work

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
    most_taken = max(one.quorum for one in batch.classes) - 1 + max(retries, default=0)
    return WaitingBatch(batch.as_batch(), len(retries), min(one.delay_bound_s for one in batch.classes), most_taken)


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
