"""Streams the jobs of a batch into the database, so many at a time, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count, islice

from domain.errors import InvalidInputError
from domain.jobs import Input, JobClass
from domain.submission import JobTemplate, NewJob
from domain.units import BatchId, JobClassId
from jobs.ports import BatchWriter
from jobs.requirements import InputSpec, JobSpec
from jobs.spec import BatchSpec
from jobs.templates import SharedTexts

CHUNK_JOBS = 5_000  # jobs per round trip

Progress = Callable[[int, int], None]  # jobs written, jobs in all


class JobStream:
    """Streams the jobs of one batch; jobs that ask for the same share a class."""

    def __init__(self, writer: BatchWriter, batch_id: BatchId, inputs: Mapping[InputSpec, Input]) -> None:
        self._writer = writer
        self._batch_id = batch_id
        self._inputs = inputs
        self._classes: dict[JobClass, JobClassId] = {}
        self._shared = SharedTexts(self._template_of)

    async def write(self, spec: BatchSpec, total: int, progress: Progress | None) -> None:
        """Raises InvalidInputError when the jobs are not as many as they were when the batch was checked."""
        jobs = _one_by_one(spec)
        written = 0
        while chunk := await asyncio.to_thread(_take, jobs):
            classes = [self._class_of(job) for job, _ in chunk]
            await self._add_classes(classes)
            new = [self._new_job(job, index, asked) for (job, index), asked in zip(chunk, classes, strict=True)]
            await self._writer.add_jobs(self._batch_id, new)
            written += len(chunk)
            if progress is not None:
                progress(written, total)
        if written != total:
            raise InvalidInputError(spec.jobs_csv or "jobs", f"the {total} jobs there were a moment ago", written)

    async def _add_classes(self, asked: Iterable[JobClass]) -> None:
        """Write those that are new, all at once: every job may ask for something else."""
        new = [job_class for job_class in dict.fromkeys(asked) if job_class not in self._classes]
        if new:
            ids = await self._writer.add_classes(self._batch_id, new)
            self._classes.update(zip(new, ids, strict=True))

    def _new_job(self, job: JobSpec, index: int, asked: JobClass) -> NewJob:
        template = self._shared.of(job)
        if template is not None:
            return NewJob(self._classes[asked], copies=asked.quorum, template=template, number=index)
        return NewJob(
            self._classes[asked],
            job.command_line_of(index),
            inputs=self._files(job.own_inputs) if job.own_inputs else None,
            copies=asked.quorum,
        )

    def _template_of(self, job: JobSpec) -> JobTemplate:
        return JobTemplate(job.command_line, self._files(job.own_inputs) if job.own_inputs else None)

    def _class_of(self, job: JobSpec) -> JobClass:
        if not job.shared_inputs:
            return job.job_class
        return replace(job.job_class, inputs=self._files(job.shared_inputs))

    def _files(self, inputs: tuple[InputSpec, ...]) -> tuple[Input, ...]:
        return tuple(self._inputs[wanted] for wanted in inputs)


def _one_by_one(spec: BatchSpec) -> Iterator[tuple[JobSpec, int]]:
    """Every single job with its index in the batch."""
    yield from zip((job for job in spec.jobs for _ in range(job.count)), count(), strict=False)


def _take(jobs: Iterator[tuple[JobSpec, int]]) -> list[tuple[JobSpec, int]]:
    return list(islice(jobs, CHUNK_JOBS))
