"""Copies the jobs of a batch into a new batch, in their order and with new instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.errors import ConflictError
from domain.jobs import JobClass
from domain.units import BatchId
from jobs.ports import BatchJobs, BatchWriter
from jobs.requirements import JobSpec


@dataclass(frozen=True, slots=True)
class CopiedJobs:
    """The jobs of a batch, read from the database when they are written."""

    batch_id: BatchId
    classes: Sequence[JobClass]
    source: BatchJobs

    async def write(self, writer: BatchWriter, batch_id: BatchId, total: int) -> None:
        """Write all jobs. Raises ConflictError if some were purged since the copy was checked."""
        ids = await writer.add_classes(batch_id, self.classes)
        new = {one.job_class_id: (made, one.quorum) for one, made in zip(self.classes, ids, strict=True)}
        written = 0
        async for jobs in self.source.jobs_to_copy(self.batch_id):
            made = [(job, *new[job.job_class_id]) for job in jobs]
            await writer.add_jobs(batch_id, [replace(job, job_class_id=id_, copies=n) for job, id_, n in made])
            written += len(jobs)
        if written != total:
            raise ConflictError(f"batch {self.batch_id} had {total} jobs and now has {written}")


async def classes_to_copy(
    batch_id: BatchId, jobs_total: int, classes: Sequence[JobClass], source: BatchJobs
) -> Sequence[JobSpec]:
    """Return one entry per job class with its number of jobs. Raises ConflictError if some jobs were purged."""
    counts = await source.class_counts(batch_id)
    if sum(counts.values()) != jobs_total:
        raise ConflictError(f"{jobs_total - sum(counts.values())} of {jobs_total} jobs of batch {batch_id} were purged")
    return [JobSpec(counts[one.job_class_id], "", one) for one in classes if one.job_class_id in counts]
