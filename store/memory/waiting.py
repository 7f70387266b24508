"""The unsent instances in the feeder's order, read from queues and never scanned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from domain.batches import Batch
from domain.jobs import InstanceState, JobClass, Ready
from domain.units import SHARDS, BatchId, HostId, InstanceId, JobClassId, VolunteerId
from domain.waiting import Candidate, FreshRange
from store.memory.rows import RETURNED, StoredInstance
from store.memory.work import Work

ALL_SHARDS = frozenset(range(SHARDS))


class MemoryWaiting:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def ready_batches(self, limit: int) -> Sequence[Batch]:
        return [self._work.batches[batch_id].as_batch() for _, _, batch_id in self._work.ready[:limit]]

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        classes = self._work.classes
        return {job_class_id: classes[job_class_id] for job_class_id in ids if job_class_id in classes}

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for wanted in ranges:
            batch = self._work.batches.get(wanted.batch_id)
            queue = batch.waiting.fresh.get(wanted.shard) if batch else None
            if queue is not None:
                ids = queue.after(wanted.after_instance_id, self._work.is_fresh)
                candidates.extend(self._candidates(islice(ids, wanted.limit)))
        return candidates

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for batch_id in batch_ids:
            batch = self._work.batches.get(batch_id)
            if batch is not None:
                candidates.extend(self._candidates(id_ for _, id_ in batch.waiting.urgent[:per_batch]))
        return candidates

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        candidates: list[Candidate] = []
        for batch_id in batch_ids:
            batch = self._work.batches.get(batch_id)
            if batch is not None:
                queues = (batch.waiting.fresh[shard] for shard in sorted(batch.waiting.fresh))
                ids = (id_ for queue in queues for id_ in queue.after(InstanceId(0), self._work.is_fresh))
                candidates.extend(self._candidates(islice(ids, per_batch)))
        return candidates

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]:
        rows = (self._work.instance(instance_id) for instance_id in instance_ids)
        return {row.instance_id for row in rows if row is not None and row.state is InstanceState.UNSENT}

    def _candidates(self, ids: Iterable[InstanceId]) -> Iterable[Candidate]:
        return (_candidate(self._work.instances[instance_id - 1]) for instance_id in ids)


class AllShards:
    """The one worker there is owns every shard."""

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
            returned = returned or (row.urgent and sibling.state in RETURNED)
    ready = Ready(
        row.instance_id,
        job.job_id,
        job.batch.batch_id,
        job.job_class.job_class_id,
        row.retries,
        sibling_returned=returned,
        hr_class=job.hr_class,
    )
    return Candidate(ready, tuple(sorted(hosts)), tuple(sorted(volunteers)))
