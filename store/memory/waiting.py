"""Reads batches, waiting work and host rankings; unsent instances come in the feeder's order, without scans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from domain.apps import CPU, AppVersion
from domain.batches import Batch, QoS, place_of
from domain.errors import NotFoundError
from domain.insight import (
    LEAST_INTERVAL_S,
    MOST_NAMED,
    SILENT_INTERVALS,
    STANDING_FIELDS,
    Newcomers,
    WaitingBatch,
    WorkAhead,
    calls_per_hour,
)
from domain.jobs import Candidate, FreshRange, InstanceState, JobClass, Ready
from domain.restrictions import pause_of
from domain.units import (
    HOUR_S,
    SHARDS,
    AppId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    SubmitterId,
    VolunteerId,
)
from lifecycle.states import UNDECIDED
from store.binary_copy import Table, native_dtype
from store.memory.columns import HAV_COLUMNS
from store.memory.rows import FreshQueue, StoredBatch, StoredInstance
from store.memory.work import OnTables

ALL_SHARDS = frozenset(range(SHARDS))
SAME = {name for name, _ in HAV_COLUMNS}


class MemoryWaiting(OnTables):
    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        paused = self._registry.restrictions
        stored = (self._work.batches[batch_id] for _, _, batch_id in self._work.ready)
        wanted = (one.as_batch() for one in stored if apps is None or one.new.app_id in apps)
        return list(islice((one for one in wanted if not paused or pause_of(paused, one) is None), limit))

    async def afap_or_due(self, limit: int, apps: Collection[AppId]) -> Sequence[Batch]:
        ready = self._with_fresh(await self.ready_batches(limit, apps))
        return [one for one in ready if one.qos is QoS.AFAP or one.deadline_at is not None]

    def _with_fresh(self, batches: Sequence[Batch]) -> list[Batch]:
        return [one for one in batches if self._work.has_fresh(self._work.batches[one.batch_id])]

    async def work_before(
        self, place: tuple[int, float, BatchId], limit: int, apps: Collection[AppId], *, without: Collection[BatchId]
    ) -> WorkAhead:
        ready = await self.ready_batches(len(self._work.ready), apps)
        before = (one for one in ready if place_of(one) < place and one.batch_id not in without)
        found = list(islice(before, limit))
        fresh = self._with_fresh(found)
        unsent, is_part = sum(one.counts.unsent for one in fresh), len(found) == limit
        return WorkAhead(len(fresh), unsent, is_part=is_part, first=fresh[:MOST_NAMED])

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        classes = self._work.classes
        return {job_class_id: classes[job_class_id] for job_class_id in ids if job_class_id in classes}

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for wanted in ranges:
            batch = self._work.batches.get(wanted.batch_id)
            queue = batch.waiting.fresh.get(wanted.shard) if batch else None
            if queue is not None:
                candidates += self._first(queue, wanted.after_instance_id, wanted.limit)
        return candidates

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for batch_id in batch_ids:
            batch = self._work.batches.get(batch_id)
            if batch is not None:
                rows = self._work.instances
                candidates += [_candidate(rows[id_ - 1]) for _, id_ in batch.waiting.urgent[:per_batch]]
        return candidates

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for batch_id in batch_ids:
            batch = self._work.batches.get(batch_id)
            if batch is not None:
                candidates += self._first_of_all(batch, per_batch)
        return candidates

    def _first_of_all(self, batch: StoredBatch, limit: int) -> list[Candidate]:
        """Return the first candidates, shard by shard."""
        found: list[Candidate] = []
        for shard in sorted(batch.waiting.fresh):
            if len(found) >= limit:
                break
            found += self._first(batch.waiting.fresh[shard], InstanceId(0), limit - len(found))
        return found

    def _first(self, queue: FreshQueue, after: InstanceId, limit: int) -> list[Candidate]:
        rows = queue.after(after, limit, self._work.fresh_of)
        return [row.candidate or _candidate(row) for row in rows]

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]:
        rows, history, unsent = self._work.instances, self._work.history, InstanceState.UNSENT
        found = (rows[id_ - 1] for id_ in instance_ids if 0 < id_ <= len(rows))
        return {row.instance_id for row in found if row.state is unsent and row.job.job_id not in history}


class AllShards:
    """Implements the feeder's Shards for a single worker, which owns every shard."""

    def owned(self) -> frozenset[int]:
        return ALL_SHARDS


def _candidate(row: StoredInstance) -> Candidate:
    if row.candidate is None:
        row.candidate = _candidate_of(row)
    return row.candidate


def _candidate_of(row: StoredInstance) -> Candidate:
    job = row.job
    hosts: list[HostId] = []
    volunteers: list[VolunteerId] = []
    returned = False
    if len(job.instances) > 1:
        for sibling in job.instances:
            if sibling.host_id is not None and sibling.volunteer_id is not None:
                hosts.append(sibling.host_id)
                volunteers.append(sibling.volunteer_id)
            returned = returned or (row.urgent and sibling.state in UNDECIDED)
    ready = Ready(
        row.instance_id,
        job.job_id,
        job.batch.batch_id,
        job.job_class.job_class_id,
        row.retries,
        sibling_returned=returned,
        hr_class=job.hr_class,
        copies=job.copies,
    )
    return Candidate(ready, tuple(sorted(hosts)), tuple(sorted(volunteers)))


class MemoryInsight(OnTables):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]:
        assert one_in == 1, "a simulated project has no samples"
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
            calls_per_hour(stored.rpc_interval_s, stored.host.last_rpc_at, now)
            for stored in self._work.hosts.values()
            if ids.isdisjoint(stored.havs)  # skip nearly all hosts after this test
            and stored.host.last_rpc_at >= active_since
            and not platforms.isdisjoint(stored.host.platforms)
            and (kind == CPU or any(gpu.type == kind for gpu in stored.host.coprocessors))
        ]
        return Newcomers(len(rates), sum(rates))

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        return [_waiting(self._work.batches[batch_id]) for _, _, batch_id in self._work.ready[:limit]]


def _standings(rows: Table, now: Instant) -> Table:
    """Convert HAV_COLUMNS to STANDING_FIELDS. Calls per hour are defined in domain.insight."""
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


class MemoryViews(OnTables):
    async def batch(self, batch_id: BatchId) -> Batch:
        return self._batch(batch_id).as_batch()

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        return [self._work.batches[one].as_batch() for one in sorted(set(ids)) if one in self._work.batches]

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]:
        batch = self._work.batches.get(batch_id)
        return list(batch.classes) if batch else []

    async def submitter_name(self, submitter_id: SubmitterId) -> str:
        if submitter_id not in self._registry.submitters:
            raise NotFoundError("submitter", submitter_id)
        return self._registry.submitters[submitter_id].name

    def _batch(self, batch_id: BatchId) -> StoredBatch:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            raise NotFoundError("batch", batch_id)
        return batch
