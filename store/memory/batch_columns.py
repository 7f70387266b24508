"""The jobs and instances of one batch in tables of numbers, for its forecasts."""

from __future__ import annotations

from collections.abc import Sequence

from domain.forecasting import INSTANCE_FIELDS, JOB_FIELDS, STANDINGS, counted_as
from domain.jobs import InstanceState, JobState
from domain.units import InstanceId, JobId
from store.binary_copy import Table
from store.memory.kept_table import KeptTable
from store.memory.rows import StoredBatch, StoredInstance, StoredJob

NAN = float("nan")
CANCELLED = -1  # in the place of a standing, or of what a job needs


class BatchColumns:
    """Tables of a batch, brought up to date when they are read. `changed` are the jobs that were touched since.

    The first instance of each job has the place of its job, the few others have those behind.
    """

    def __init__(self, batch: StoredBatch, jobs: Sequence[StoredJob]) -> None:
        self.changed: set[JobId] = set()
        self._batch = batch
        self._all = jobs
        self._first = batch.job_ids.start
        self._further: dict[InstanceId, int] = {}
        self._jobs = KeptTable(JOB_FIELDS, len(batch.job_ids))
        self._instances = KeptTable(INSTANCE_FIELDS, len(batch.job_ids))
        self._write(batch.job_ids)

    def jobs(self) -> Table:
        """JOB_FIELDS of those that were not cancelled; a copy."""
        self._update()
        rows = self._jobs.rows
        found: Table = rows[rows["needed"] != CANCELLED]
        return found

    def instances(self) -> Table:
        """INSTANCE_FIELDS of those that were not cancelled, nor their jobs; a copy."""
        self._update()
        rows = self._instances.rows
        found: Table = rows[rows["standing"] != CANCELLED]
        return found

    def _update(self) -> None:
        if self.changed:
            self._write(sorted(self.changed))
            self.changed.clear()

    def _write(self, job_ids: Sequence[int]) -> None:
        jobs = [self._all[job_id - 1] for job_id in job_ids]
        self._jobs.write([job.job_id - self._first for job in jobs], [_job(job) for job in jobs])
        created_at = self._batch.new.created_at
        places, rows = [], []
        for job in jobs:
            gone = job.state is JobState.CANCELLED
            for number, row in enumerate(job.instances):
                places.append(self._further_place(row) if number else job.job_id - self._first)
                rows.append(_instance(row, created_at, gone=gone))
        self._instances.write(places, rows)

    def _further_place(self, row: StoredInstance) -> int:
        further = self._further
        return further.setdefault(row.instance_id, len(self._batch.job_ids) + len(further))


def _job(job: StoredJob) -> tuple[object, ...]:
    """The fields of JOB_FIELDS."""
    one = job.job_class
    needed = CANCELLED if job.state is JobState.CANCELLED else min(one.max_instances, max(one.quorum, job.copies))
    return (job.job_id, one.fpops_est_flop, job.state is JobState.OPEN, needed)


def _instance(row: StoredInstance, batch_at: float, *, gone: bool) -> tuple[object, ...]:
    """The fields of INSTANCE_FIELDS; those made with their batch were made at `batch_at`."""
    is_cancelled = gone or row.state is InstanceState.CANCELLED
    return (
        row.job.job_id,
        -1 if row.host_id is None else row.host_id,
        -1 if row.app_version_id is None else row.app_version_id,
        CANCELLED if is_cancelled else STANDINGS[row.state],
        counted_as(row.state, has_sample=row.turnaround_sample is not None),
        batch_at if row.created_at is None else row.created_at,
        NAN if row.sent_at is None else row.sent_at,
        NAN if row.due_at is None else row.due_at,
        NAN if row.timeout_at is None else row.timeout_at,
        NAN if row.reported_at is None else row.reported_at,
    )
