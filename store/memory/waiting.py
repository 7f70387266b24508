"""Reads unsent instances in the feeder's order from queues, without scans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from domain.batches import Batch
from domain.jobs import Candidate, FreshRange, InstanceState, JobClass, Ready
from domain.restrictions import pause_of
from domain.units import SHARDS, BatchId, HostId, InstanceId, JobClassId, VolunteerId
from lifecycle.states import UNDECIDED
from store.memory.rows import FreshQueue, StoredBatch, StoredInstance
from store.memory.work import OnTables

ALL_SHARDS = frozenset(range(SHARDS))


class MemoryWaiting(OnTables):
    async def ready_batches(self, limit: int) -> Sequence[Batch]:
        paused = self._registry.restrictions
        first = self._work.ready if paused else self._work.ready[:limit]
        found = [self._work.batches[batch_id].as_batch() for _, _, batch_id in first]
        return [one for one in found if pause_of(paused, one) is None][:limit] if paused else found

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
