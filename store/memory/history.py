"""Jobs of batches that ended long ago, and the months of them that were purged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from domain.batches import BatchState
from domain.history import FinishedMonth, JobPlace, MovedJobs, OutputPage, month_of
from domain.jobs import InstanceState, JobState
from domain.units import InstanceId, Instant
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredJob
from store.memory.sweeping import DUE_COUNTED
from store.memory.work import Work

UNDER_WAY = frozenset((InstanceState.UNSENT, InstanceState.IN_PROGRESS))


class MemoryHistory:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        for batch_id in sorted(batch_id for batch_id in self._work.batches if batch_id >= after.batch_id):
            batch = self._work.batches[batch_id]
            if batch.state is BatchState.ACTIVE or batch.ended_at is None or batch.ended_at > before:
                continue
            first = after.job_id + 1 if batch_id == after.batch_id else 0
            found = [job for job in self._busy(batch) if job.job_id >= first][:limit]
            if found:
                moved = [job for job in found if self._is_movable(job, before)]
                self._work.history.update(job.job_id for job in moved)
                self._note_month(month_of(batch.ended_at), moved)
                instances = sum(len(job.instances) for job in moved)
                return MovedJobs(len(moved), instances, JobPlace(batch_id, found[-1].job_id), more=True)
        return MovedJobs()

    def _busy(self, batch: StoredBatch) -> Iterator[StoredJob]:
        """The batch's jobs that are not in the history."""
        return (self._work.jobs[job_id - 1] for job_id in batch.job_ids if job_id not in self._work.history)

    def _is_movable(self, job: StoredJob, before: Instant) -> bool:
        passed = min(before, self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0)))
        return (
            job.state is not JobState.OPEN
            and job.job_id not in self._work.todo
            and not any(row.state in UNDER_WAY or (row.due_at or 0.0) > passed for row in job.instances)
        )

    def _note_month(self, month: str, moved: Sequence[StoredJob]) -> None:
        if moved:
            self._work.months.setdefault(month, None)

    def _kept(self, month: str) -> list[StoredJob]:
        """The jobs of a month, ascending."""
        jobs = (self._work.jobs[job_id - 1] for job_id in sorted(self._work.history - self._work.purged))
        return [job for job in jobs if job.batch.ended_at is not None and month_of(job.batch.ended_at) == month]

    async def months(self) -> Sequence[FinishedMonth]:
        return [self._month(month) for month in sorted(self._work.months)]

    def _month(self, month: str) -> FinishedMonth:
        jobs = self._kept(month)
        rows = [row for job in jobs for row in job.instances]
        uploads = [upload for row in rows for upload in row.uploads]
        file_bytes = sum(upload.nbytes for upload in uploads)
        found = FinishedMonth(month, len(jobs), len(rows), len(uploads), file_bytes)
        return replace(found, purged_at=self._work.months[month])

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        rows = sorted((row for job in self._kept(month) for row in job.instances), key=lambda row: row.instance_id)
        page = [row for row in rows if row.instance_id > after][:limit]
        names = tuple(upload.name for row in page for upload in row.uploads)
        return OutputPage(names, page[-1].instance_id if page else None)

    async def purge_month(self, month: str, *, now: Instant) -> None:
        """A month of which there is nothing is left as it is."""
        if month in self._work.months:
            self._work.purged.update(job.job_id for job in self._kept(month))
            self._work.months[month] = now
            for batch_id in list(self._work.forecasts):
                ended_at = self._work.batches[batch_id].ended_at
                if ended_at is not None and month_of(ended_at) == month:
                    del self._work.forecasts[batch_id]
