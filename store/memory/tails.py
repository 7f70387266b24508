"""The last jobs of batches over the tables: what they wait for, and copies of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from domain.acceleration import LowTurnaround
from domain.batches import Batch, BatchCounts, BatchState
from domain.hosts import HostAppVersion
from domain.jobs import JobState
from domain.ranking import SHRINKAGE
from domain.settlement import CopyUse, ExtraCopy, TailInstance, TailJob
from domain.units import BatchId, Instant, JobId, Seconds
from store.binary_copy import Table
from store.memory.rows import StoredBatch, StoredInstance, StoredJob
from store.memory.turnarounds import BatchReturns, low_turnaround_of, without
from store.memory.work import Work


class MemoryTails:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def tails(self, *, fraction: float, jobs: int, limit: int, unsent: float = -1.0) -> Sequence[Batch]:
        def is_short(batch: StoredBatch) -> bool:
            counts = batch.counts
            is_sent = counts.unsent <= unsent * counts.jobs_total
            few = counts.jobs_open <= max(math.ceil(fraction * counts.jobs_total), jobs)
            return counts.jobs_open >= 1 and (few or is_sent)

        active = (batch for batch in self._work.batches.values() if batch.state is BatchState.ACTIVE)
        short = sorted((batch for batch in active if is_short(batch)), key=lambda batch: batch.order)
        return [batch.as_batch() for batch in short[:limit]]

    async def tail_jobs(self, batch_id: BatchId, *, after: JobId, limit: int, now: Instant) -> Sequence[TailJob]:
        batch = self._work.batches.get(batch_id)
        ids = self._open_jobs(batch) if batch is not None else []
        behind = ids[bisect_right(ids, after) :][:limit]
        return [self._tail_job(self._work.jobs[job_id - 1], now) for job_id in behind]

    def _open_jobs(self, batch: StoredBatch) -> Sequence[JobId]:
        """Ascending. Jobs that are over stay so: those that were open before are all that need be looked at, if any."""
        jobs, known = self._work.jobs, batch.tail
        if known is not None and batch.state is BatchState.ACTIVE and len(known) == batch.counts.jobs_open:
            return known
        ids = batch.job_ids if known is None else known
        batch.tail = [JobId(job_id) for job_id in ids if jobs[job_id - 1].state is JobState.OPEN]
        return batch.tail

    def _tail_job(self, job: StoredJob, now: Instant) -> TailJob:
        instances = tuple([self._tail_instance(row, now) for row in job.instances])
        return TailJob(job.job_id, job.job_class, job.copies, job.tail_copies, instances, job.median_turnaround_s)

    def _tail_instance(self, row: StoredInstance, now: Instant) -> TailInstance:
        if row.host_id is None or row.app_version_id is None or row.sent_at is None:
            return TailInstance(row.instance_id, row.state, row.tight)
        stored = self._work.hosts[row.host_id]
        return TailInstance(
            row.instance_id,
            row.state,
            row.tight,
            row.host_id,
            row.app_version_id,
            row.sent_at,
            row.est_runtime_s or Seconds(0.0),
            _ln_ratio(stored.havs.get(row.app_version_id), now, tight=row.tight),
        )

    async def copy_use(self, batch_id: BatchId) -> CopyUse:
        batch = self._work.batches[batch_id]
        jobs = [self._work.jobs[job_id - 1] for job_id in batch.job_ids]
        if batch.wanted is None:
            batch.wanted = sum(job.wanted for job in jobs)
        return CopyUse(batch.wanted, sum(job.tail_copies for job in jobs))

    async def add_copies(self, copies: Sequence[ExtraCopy], *, now: Instant) -> int:
        made = 0
        for copy in {copy.job_id: copy for copy in copies}.values():
            job = self._work.jobs[copy.job_id - 1]
            as_decided = (len(job.instances), job.tail_copies) == (copy.instances, copy.tail_copies)
            if job.state is not JobState.OPEN or not as_decided:
                continue
            job.tail_copies += 1
            job.more_instances += copy.more_instances
            self._work.add_instance(job, retries=copy.retries, urgent=True, created_at=now)
            job.instances[-1].copied_because = copy.because
            self._work.count(job.batch, BatchCounts(unsent=1))
            made += 1
        return made

    async def hasten(self, job_ids: Sequence[JobId]) -> None:
        for job_id in job_ids:
            for row in self._work.jobs[job_id - 1].instances:
                self._work.hasten(row)

    async def low_turnaround(self, *, since: Instant) -> LowTurnaround:
        recent = (batch for batch in self._work.batches.values() if batch.new.created_at >= since)
        return low_turnaround_of((batch.batch_id, batch.new.app_id, self._returned(batch)) for batch in recent)

    def _returned(self, batch: StoredBatch) -> Table:
        if not isinstance(batch.returns, BatchReturns):
            batch.returns = BatchReturns(batch, self._work.jobs)
        return without(batch.returns.rows(), self._work.purged)


def _ln_ratio(hav: HostAppVersion | None, now: Instant, *, tight: bool) -> float:
    if hav is None:
        return 0.0
    sums = hav.tight if tight else hav.relaxed
    weight = sums.kept_fraction(now)
    return sums.total * weight / (sums.n * weight + SHRINKAGE)
