"""Settles jobs something happened to: compares outputs, finds the canonical one, asks for more instances.

1 read jobs to settle; 2 group the outputs that must be compared; 3 let the life-cycle decide; 4 write.
A job that cannot be settled is logged, counted, left alone for a while, and never holds up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from domain.clock import Clock
from domain.jobs import JobState
from domain.settlement import InstanceFacts, JobFacts, JobSettlement
from domain.units import InstanceId, Instant, JobId
from jobs.ports import OutputReader, UnsettledJobs
from jobs.settling import copies_of, job_settlement, uploads_by_output, view_of
from jobs.writing import Resting, write_or_rest
from lifecycle.compare import Comparer, OutputCopy, comparer_for, group_outputs
from lifecycle.settle import needs_comparison, settle

LIMIT = 500  # jobs per round


@dataclass(frozen=True, slots=True)
class ValidatorReport:
    """One round. `current` of the settled jobs were still as they had been read; `broken` failed to settle."""

    looked_at: int = 0
    current: int = 0
    validated: int = 0
    failed: int = 0
    retried: int = 0  # instances asked for
    broken: int = 0
    more: bool = False  # the round was full


class Validator:
    """Runs in one process per cluster; a second one would only do the same work twice.

    `max_lost()` is lifecycle.max_lost_instances of the moment.
    """

    def __init__(
        self,
        unsettled: UnsettledJobs,
        outputs: OutputReader,
        clock: Clock,
        *,
        max_lost: Callable[[], int],
        limit: int = LIMIT,
    ) -> None:
        self._unsettled = unsettled
        self._outputs = outputs
        self._clock = clock
        self._max_lost = max_lost
        self._limit = limit
        self._resting: Resting[JobId] = Resting("job", structlog.get_logger("jobs.validator"))

    async def run_once(self) -> ValidatorReport:
        """One round over at most `limit` jobs, besides those that rest."""
        now = self._clock.now()
        self._resting.wake(now)
        found = await self._unsettled.unsettled(self._limit + len(self._resting))
        jobs = [job for job in found if job.job_id not in self._resting][: self._limit]
        settlements = [settled for job in jobs if (settled := await self._settled(job, now)) is not None]
        current = await write_or_rest(
            settlements, self._unsettled.settle, key=lambda one: one.job_id, resting=self._resting, now=now
        )
        written = [one for one in settlements if one.job_id not in self._resting]
        return _report(jobs, written, current, more=len(jobs) == self._limit)

    async def _settled(self, job: JobFacts, now: Instant) -> JobSettlement | None:
        """The change that settles the job; None when that failed."""
        try:
            view = view_of(job, max_lost=self._max_lost())
            groups = await self._groups(job, needs_comparison(view))
            return job_settlement(job, settle(view, groups), now)
        except Exception as error:  # whatever one job's files hold must not stop the others
            self._resting.add(job.job_id, now, error)
            return None

    async def _groups(self, job: JobFacts, ids: Sequence[InstanceId]) -> Mapping[InstanceId, int]:
        comparer = comparer_for(job.job_class.validator, job.job_class.tolerance)
        compared = [instance for instance in job.instances if instance.instance_id in ids]
        if not comparer.needs_content:
            outputs = {instance.instance_id: copies_of(instance, job.job_class, {}) for instance in compared}
            return group_outputs(comparer, outputs, around=job.canonical_instance_id)
        return await self._groups_of_contents(job, comparer, compared)

    async def _groups_of_contents(
        self, job: JobFacts, comparer: Comparer, compared: Iterable[InstanceFacts]
    ) -> Mapping[InstanceId, int]:
        outputs: dict[InstanceId, tuple[OutputCopy, ...]] = {}
        for instance in compared:
            uploads = uploads_by_output(instance, job.job_class).values()
            contents = {upload.name: await self._outputs.read_output(upload.name) for upload in uploads}
            outputs[instance.instance_id] = copies_of(instance, job.job_class, contents)
        return await asyncio.to_thread(group_outputs, comparer, outputs, around=job.canonical_instance_id)


def _report(jobs: Sequence[JobFacts], settled: Sequence[JobSettlement], current: int, *, more: bool) -> ValidatorReport:
    before = {job.job_id: job.state for job in jobs}
    ended = [settlement.state for settlement in settled if before[settlement.job_id] is JobState.OPEN]
    return ValidatorReport(
        looked_at=len(jobs),
        current=current,
        validated=ended.count(JobState.VALID),
        failed=ended.count(JobState.FAILED),
        retried=sum(settlement.new_instances for settlement in settled),
        broken=len(jobs) - len(settled),
        more=more,
    )
