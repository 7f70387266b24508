"""Reads and writes jobs to settle, in order of change, and the last jobs of batches with their copies, in memory."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice

from domain.acceleration import LowTurnaround
from domain.batches import Batch, BatchCounts, BatchState
from domain.dispatch import InstanceStep
from domain.havs import HavEvent
from domain.hosts import HostAppVersion
from domain.jobs import InstanceState, JobState, ValidatorKind
from domain.ranking import SHRINKAGE
from domain.settlement import (
    ALL_JOBS,
    CopyUse,
    ExtraCopy,
    InstanceFacts,
    JobFacts,
    JobSettlement,
    JobShare,
    TailInstance,
    TailJob,
)
from domain.units import DAY_S, BatchId, Instant, JobId, Seconds, later
from lifecycle.states import UNDECIDED
from store.binary_copy import Table
from store.memory.columns import BatchReturns, low_turnaround_of, without
from store.memory.rows import StoredBatch, StoredInstance, StoredJob, taken
from store.memory.work import OnTables, Work


class MemoryUnsettled(OnTables):
    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        waiting = self._work.compared_until
        todo = (
            (job_id, serial)
            for job_id, serial in self._work.todo.items()
            if waiting.get(job_id, now) <= now
            and job_id % share.of == share.part
            and (with_content or self._work.jobs[job_id - 1].job_class.validator is not ValidatorKind.TOLERANCE)
        )
        return [_job_facts(self._work.jobs[job_id - 1], serial) for job_id, serial in islice(todo, limit)]

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        attempts, until = self._work.comparison_attempts, self._work.compared_until
        free = [job_id for job_id in job_ids if job_id in self._work.todo and until.get(job_id, now) <= now]
        for job_id in free:
            until[job_id] = later(now, min(DAY_S, 60.0 * 4.0 ** attempts.get(job_id, 0)))
            attempts[job_id] = attempts.get(job_id, 0) + 1
        return {job_id: attempts[job_id] for job_id in free}

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        settled = 0
        events: list[HavEvent] = []
        for settlement in settlements:
            if self._is_current(settlement):
                events.extend(self._settle(settlement))
                settled += 1
        self._work.apply_events(events)
        if self._work.granted:
            self._work.grant_credit(now=max(settlement.settled_at for settlement in settlements))
        return settled

    def _is_current(self, settlement: JobSettlement) -> bool:
        """Return whether the job is unchanged since it was read. A job that has ended stays ended."""
        if self._work.todo.get(settlement.job_id) != settlement.serial:
            return False
        return self._work.jobs[settlement.job_id - 1].state in (JobState.OPEN, settlement.state)

    def _settle(self, settlement: JobSettlement) -> list[HavEvent]:
        """Apply a settlement. Return the events of its steps."""
        del self._work.todo[settlement.job_id]
        self._work.compared_until.pop(settlement.job_id, None)
        self._work.comparison_attempts.pop(settlement.job_id, None)
        job = self._work.jobs[settlement.job_id - 1]
        made = [step for step in settlement.steps if make_step(self._work, step)]
        if settlement.hasten:
            for row in job.instances:
                self._work.hasten(row)
        if settlement.copies_needed:
            for row in job.instances:
                if row.state is InstanceState.UNSENT:
                    row.copied_because = None
        if settlement.new_instances:
            self._add_instances(job, settlement)
        if settlement.state is not job.state:
            job.canonical_instance_id = settlement.canonical_instance_id
            job.failure = settlement.failure
            self._work.end_job(job, settlement.state, now=settlement.settled_at)
        return [step.hav_event for step in made if step.hav_event is not None]

    def _add_instances(self, job: StoredJob, settlement: JobSettlement) -> None:
        """Add unsent instances. They are urgent for a retry, or if another instance has returned."""
        urgent = settlement.retries > 0 or any(row.state in UNDECIDED for row in job.instances)
        for _ in range(settlement.new_instances):
            self._work.add_instance(job, retries=settlement.retries, urgent=urgent, created_at=settlement.settled_at)
        self._work.count(job.batch, BatchCounts(unsent=settlement.new_instances))


def make_step(work: Work, step: InstanceStep) -> bool:
    """Make a guarded step. Return False if the instance is no longer in the expected state."""
    row = work.instance(step.instance_id)
    if row is None or row.state is not step.from_state:
        return False
    work.step(row, step.to_state)
    if step.turnaround_sample is not None:
        row.turnaround_sample = step.turnaround_sample
    if step.reason:
        row.reason = step.reason
    if step.credit is not None:
        row.credit = step.credit
        work.granted.append(row)
    return True


def _job_facts(job: StoredJob, serial: int) -> JobFacts:
    return JobFacts(
        job.job_id,
        job.batch.batch_id,
        serial,
        job.state,
        job.job_class,
        job.copies,
        job.canonical_instance_id,
        batch_aborted=job.batch.state is BatchState.ABORTED,
        app_name=job.batch.app_name,
        instances=tuple(_instance_facts(row) for row in job.instances),
        tail_copies=job.tail_copies,
        more_instances=job.more_instances,
        retried_after=job.retried_after,
    )


_instance_facts = taken(InstanceFacts, median_turnaround_s="job.median_turnaround_s")


class MemoryTails(OnTables):
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
        """Return the open jobs, ascending. Ended jobs stay ended, so only previously open jobs are checked."""
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
            self._work.mark(
                {job.job_id} & self._work.todo.keys()
            )  # renewed: a settlement decided before is not current
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
