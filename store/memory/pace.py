"""How long do an app's results take, and those of a batch? Over the tables, as the SQL of the same purpose. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median_low

from domain.jobs import InstanceState
from domain.units import JobId, Seconds
from store.memory.rows import StoredBatch, StoredInstance
from store.memory.work import Work

LEAST_RESULTS = 20
JOBS_OF_APP, JOBS_OF_BATCH = 100, 400  # of each batch
OUT = (InstanceState.IN_PROGRESS, InstanceState.TIMED_OUT)


def app_pace(work: Work, batches: Sequence[StoredBatch]) -> float | None:
    """The median of turnaround in seconds per estimated flop; None below 20 valid results."""
    found = [
        _turnaround_s(one) / one.job.job_class.fpops_est_flop
        for batch in batches
        for one in _instances(work, batch, JOBS_OF_APP)
        if one.state is InstanceState.VALID
    ]
    return median_low(found) if len(found) >= LEAST_RESULTS else None


def median_of_batch(work: Work, batch: StoredBatch) -> Seconds | None:
    """The median turnaround, what is out or was given up last of all; None before half is back, or below 20."""
    sent = list(_instances(work, batch, JOBS_OF_BATCH))
    back = [_turnaround_s(one) for one in sent if one.state is InstanceState.VALID]
    if len(back) < LEAST_RESULTS:
        return None
    median_s = median_low([*back, *[inf for one in sent if one.state in OUT]])
    return Seconds(median_s) if median_s < inf else None


def _instances(work: Work, batch: StoredBatch, jobs: int) -> Iterator[StoredInstance]:
    for job_id in batch.job_ids[:jobs]:
        job = work.job(JobId(job_id))
        if job is not None:
            yield from job.instances


def _turnaround_s(instance: StoredInstance) -> float:
    assert instance.sent_at is not None and instance.reported_at is not None
    return max(1.0, instance.reported_at - instance.sent_at)
