"""Aborts batches, retries failed jobs of a batch, and copies batches, in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

import store.memory.submissions
from domain.batches import Batch, BatchState
from domain.errors import ConflictError, NotFoundError
from domain.jobs import InstanceState, JobState
from domain.submission import NewJob, SubmissionKey
from domain.units import AppVersionId, BatchId, InstanceId, Instant, JobClassId
from domain.views import FailedInstance
from lifecycle.states import JOB_ERRORS
from priority.logical_time import abort_refund, notes_of_reopened
from store.counting import job_counts
from store.memory.ordering import OrderBook, correct_logical_times, ordered_batch
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance, StoredJob
from store.memory.work import OnTables, Work


class MemorySubmissions(store.memory.submissions.MemorySubmissions):
    async def abort_batch(self, batch_id: BatchId, *, now: Instant) -> Batch:
        batch = self.work.batches.get(batch_id)
        if batch is None:
            raise NotFoundError("batch", batch_id)
        if batch.state is not BatchState.ACTIVE:
            return batch.as_batch()
        self.work.end_batch(batch, BatchState.ABORTED, now=now)
        refund = abort_refund(ordered_batch(batch, self._book, self.work.batches))
        if refund is not None and not self.lock(batch.new.submitter_id).locked():
            correct_logical_times(self.registry, self.work, [refund])
        for job_id in batch.job_ids:
            job = self.work.jobs[job_id - 1]
            if job.state is JobState.OPEN:
                self.work.end_job(job, JobState.CANCELLED, now=now)
                for row in job.instances:
                    if row.state is InstanceState.UNSENT:
                        self.work.step(row, InstanceState.CANCELLED)
        return batch.as_batch()

    async def note_answer(self, key: SubmissionKey, answer: Mapping[str, object]) -> None:
        before, at = self.keys[key.owner, key.key]
        self.keys[key.owner, key.key] = (replace(before, answer=json.loads(json.dumps(answer))), at)


class MemoryRepeating(OnTables):
    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        super().__init__(registry, work)
        self._book = book

    async def retry_failed(self, batch_id: BatchId, *, now: Instant) -> int:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            raise NotFoundError("batch", batch_id)
        if batch.state is BatchState.ABORTED:
            raise ConflictError(f"batch {batch_id} was aborted: its jobs cannot be retried")
        if batch.state is BatchState.COMPLETE and not (self._work.history - self._work.purged).isdisjoint(
            batch.job_ids
        ):
            raise ConflictError(f"jobs of batch {batch_id} are in the history: clone the batch instead")
        jobs = [self._work.jobs[job_id - 1] for job_id in batch.job_ids]
        failed = [job for job in jobs if job.state is JobState.FAILED]
        was_complete = batch.state is BatchState.COMPLETE
        for job in failed:
            self._reopen(job)
        if failed and was_complete:
            self._reopen_batch(batch, now)
        return len(failed)

    async def failures_of_version(
        self, app_version_id: AppVersionId, *, since: Instant, limit: int, stderr_chars: int
    ) -> Sequence[FailedInstance]:
        every = [row for job in self._work.jobs for row in job.instances if row.state in JOB_ERRORS]
        own = [row for row in every if row.app_version_id == app_version_id and (row.reported_at or since) >= since]
        own.sort(key=lambda row: (-(row.reported_at or since), -row.instance_id))
        return [self._failed(row, stderr_chars) for row in own[:limit]]

    async def failures(self, batch_id: BatchId, *, limit: int, stderr_chars: int) -> Sequence[FailedInstance]:
        failed = [row for job in self._jobs(batch_id) for row in job.instances if row.state in JOB_ERRORS]
        failed.sort(key=lambda row: (-row.retries, row.instance_id))
        kept = [row for state in JOB_ERRORS for row in [one for one in failed if one.state is state][:limit]]
        return [self._failed(row, stderr_chars) for row in failed if row in kept]

    def _failed(self, row: StoredInstance, stderr_chars: int) -> FailedInstance:
        assert row.host_id is not None and row.app_version_id is not None
        version = self._registry.versions[row.app_version_id]
        return FailedInstance(
            row.instance_id,
            row.job.batch.batch_id,
            row.job.job_id,
            row.state,
            row.host_id,
            row.exit_status,
            row.reason,
            row.stderr[-stderr_chars:],
            version.platform,
            version.version_num,
            version.plan_class.name,
        )

    async def class_counts(self, batch_id: BatchId) -> Mapping[JobClassId, int]:
        return Counter(job.job_class.job_class_id for job in self._jobs(batch_id))

    async def jobs_to_copy(self, batch_id: BatchId) -> AsyncIterator[Sequence[NewJob]]:
        jobs = self._jobs(batch_id)
        yield [NewJob(job.job_class.job_class_id, job.command_line, job.inputs) for job in jobs]

    def _jobs(self, batch_id: BatchId) -> list[StoredJob]:
        ids = self._work.batches[batch_id].job_ids if batch_id in self._work.batches else range(0)
        return [self._work.jobs[job_id - 1] for job_id in ids if job_id not in self._work.purged]

    def _reopen(self, job: StoredJob) -> None:
        batch = job.batch
        if batch.state is BatchState.COMPLETE:
            batch.state, batch.ended_at = BatchState.ACTIVE, None
        self._work.count(batch, job_counts(job.state, JobState.OPEN))
        job.state, job.failure, job.ended_at = JobState.OPEN, "", None
        job.retried_after = max((row.instance_id for row in job.instances), default=InstanceId(0))
        job.changed()
        batch.tail = None
        self._work.mark([job.job_id])

    def _reopen_batch(self, batch: StoredBatch, now: Instant) -> None:
        self._book.serial += 1
        forecasts = self._work.forecasts.get(batch.batch_id, [])
        self._work.forecasts[batch.batch_id] = [replace(one, checkpoint_fraction=None) for one in forecasts]
        if batch.batch_id not in self._book.notes:
            one = ordered_batch(batch, self._book, self._work.batches)
            self._book.notes[batch.batch_id] = notes_of_reopened(one, now)
