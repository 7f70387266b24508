"""Estimates the bytes a batch takes in the database, from what its jobs ask for. Pure.

The constants are measured (rows of `job` take 163 bytes, of `instance` 231, with their indexes and without texts), with
room for what a dispatch adds.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.jobs import JobClass
from jobs.requirements import InputSpec, JobSpec
from jobs.templates import SharedTexts

JOB_BYTES = 180
INSTANCE_BYTES = 320
CLASS_BYTES = 300
FILE_BYTES = 160  # of an input or output, without its names


class StoredSize:
    """Adds up a batch. What jobs share counts once, as it is stored once."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._shared = SharedTexts(self._add_shared)
        self._classes: dict[tuple[JobClass, tuple[InputSpec, ...]], None] = {}
        self._last: JobSpec | None = None

    def add(self, job: JobSpec) -> None:
        """Count a table or row of jobs."""
        of_one = JOB_BYTES + INSTANCE_BYTES * job.job_class.quorum
        if not self._shared.of(job):
            of_one += _text_bytes(job)
        self.nbytes += job.count * of_one
        self._add_class(job)

    def _add_shared(self, job: JobSpec) -> bool:
        self.nbytes += _text_bytes(job)
        return True

    def _add_class(self, job: JobSpec) -> None:
        last, self._last = self._last, job
        if last is not None and last.job_class is job.job_class and last.shared_inputs is job.shared_inputs:
            return
        kind = (job.job_class, job.shared_inputs)
        if kind not in self._classes:
            self._classes[kind] = None
            outputs = sum(FILE_BYTES + len(output.name.encode()) for output in job.job_class.outputs)
            self.nbytes += CLASS_BYTES + outputs + _input_bytes(job.shared_inputs)


def _text_bytes(job: JobSpec) -> int:
    return len(job.command_line.encode()) + _input_bytes(job.own_inputs)


def _input_bytes(inputs: Iterable[InputSpec]) -> int:
    return sum(FILE_BYTES + len(f"{one.name or one.path}{one.open_name}".encode()) for one in inputs)
