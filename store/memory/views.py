"""Batches, jobs and hosts as people look at them; and a recount of what is counted as it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from domain.batches import Batch, BatchCounts
from domain.dispatch import Upload
from domain.errors import NotFoundError
from domain.history import month_of
from domain.hosts import Host, HostAppVersion
from domain.jobs import JobClass, JobState
from domain.units import AccountId, AppId, BatchId, HostId, InstanceId, JobId, SubmitterId
from domain.views import InstanceRow, JobRow, Whose
from store.counting import added, instance_counts, job_counts
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance, StoredJob
from store.memory.work import Work


class MemoryViews:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def batch(self, batch_id: BatchId) -> Batch:
        return self._batch(batch_id).as_batch()

    async def batches(self, *, limit: int, before: BatchId | None = None) -> Sequence[Batch]:
        ids = sorted((id_ for id_ in self._work.batches if before is None or id_ < before), reverse=True)
        return [self._work.batches[batch_id].as_batch() for batch_id in ids[:limit]]

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        return [self._work.batches[one].as_batch() for one in sorted(set(ids)) if one in self._work.batches]

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]:
        batch = self._work.batches.get(batch_id)
        return list(batch.classes) if batch else []

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            return []
        first = batch.job_ids.start if after is None else max(batch.job_ids.start, after + 1)
        ids = (job_id for job_id in range(first, batch.job_ids.stop) if job_id not in self._work.purged)
        return [_job_row(self._work.jobs[job_id - 1], ()) for job_id in islice(ids, limit)]

    async def job(self, job_id: JobId) -> JobRow:
        job = self._work.job(job_id)
        if job is None:
            raise NotFoundError("job", job_id)
        return _job_row(job, tuple(_instance_row(row) for row in job.instances))

    async def uploads_of(
        self, batch_id: BatchId, instances: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Upload, ...]]:
        found = (self._work.instance_of_any_age(one) for one in instances)
        return {
            one.instance_id: one.uploads
            for one in found
            if one is not None and one.uploads and one.job.batch.batch_id == batch_id
        }

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]:
        first = 1 if after is None else after + 1
        ids = range(first, min(len(self._work.hosts) + 1, first + limit))
        return [self._work.hosts[HostId(host_id)].host for host_id in ids]

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]:
        stored = self._work.hosts.get(host_id)
        if stored is None:
            raise NotFoundError("host", host_id)
        return stored.host, [stored.havs[app_version_id] for app_version_id in sorted(stored.havs)]

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        found = (self._work.batches.get(batch_id) for batch_id in ids)
        return {one.batch_id: self._whose(one.as_batch()) for one in found if one is not None}

    def _whose(self, batch: Batch) -> Whose:
        registry = self._registry
        return Whose(
            registry.apps[batch.app_id].name,
            registry.submitters[batch.submitter_id].name,
            registry.accounts[batch.account_id].name,
        )

    async def account_name(self, account_id: AccountId) -> str:
        if account_id not in self._registry.accounts:
            raise NotFoundError("account", account_id)
        return self._registry.accounts[account_id].name

    async def submitter_name(self, submitter_id: SubmitterId) -> str:
        if submitter_id not in self._registry.submitters:
            raise NotFoundError("submitter", submitter_id)
        return self._registry.submitters[submitter_id].name

    async def app_name(self, app_id: AppId) -> str:
        if app_id not in self._registry.apps:
            raise NotFoundError("app", app_id)
        return self._registry.apps[app_id].name

    async def check_counters(self) -> Sequence[str]:
        """A sentence for each batch whose counters differ from its rows."""
        return [
            f"batch {batch.batch_id}: counters say {batch.counts}, rows say {recounted}"
            for batch in self._work.batches.values()
            if not self._was_purged(batch) and (recounted := self._recounted(batch)) != batch.counts
        ]

    def _was_purged(self, batch: StoredBatch) -> bool:
        return batch.ended_at is not None and self._work.months.get(month_of(batch.ended_at)) is not None

    def _recounted(self, batch: StoredBatch) -> BatchCounts:
        total = BatchCounts(jobs_total=batch.new.jobs_total)
        for job_id in batch.job_ids:
            job = self._work.jobs[job_id - 1]
            total = added(total, job_counts(JobState.OPEN, job.state))
            for row in job.instances:
                total = added(total, instance_counts(row.counted()))
        return total

    def _batch(self, batch_id: BatchId) -> StoredBatch:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            raise NotFoundError("batch", batch_id)
        return batch


def _job_row(job: StoredJob, instances: tuple[InstanceRow, ...]) -> JobRow:
    return JobRow(
        job.job_id,
        job.batch.batch_id,
        job.job_class.job_class_id,
        job.state,
        job.command_line,
        job.failure,
        job.canonical_instance_id,
        instances,
    )


def _instance_row(row: StoredInstance) -> InstanceRow:
    return InstanceRow(
        row.instance_id,
        row.job.job_id,
        row.state,
        row.retries,
        row.tight,
        row.host_id,
        row.app_version_id,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.est_runtime_s,
        row.elapsed_s,
        row.exit_status,
        row.reason,
        row.because,
        row.stderr,
        row.uploads,
    )
