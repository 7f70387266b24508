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
from domain.errors import UnavailableError
from domain.jobs import JobState
from domain.settings import LifecycleSettings
from domain.settlement import InstanceFacts, JobFacts, JobSettlement
from domain.units import InstanceId, Instant, JobId, Seconds, later
from jobs.ports import OutputReader, UnsettledJobs
from jobs.settling import copies_of, job_settlement, uploads_by_output, view_of
from lifecycle.compare import Comparer, OutputCopy, comparer_for, group_outputs
from lifecycle.settle import needs_comparison, settle

LIMIT = 500  # jobs per round
REST_S = Seconds(60.0)  # a job that could not be settled is left alone this long


@dataclass(frozen=True, slots=True)
class ValidatorReport:
    """One round. `current` of the settled jobs were still as they had been read; `broken` failed to settle."""

    looked_at: int = 0
    current: int = 0
    validated: int = 0
    failed: int = 0
    retried: int = 0  # instances asked for
    broken: int = 0


class Validator:
    """Runs in one process per cluster; a second one would only do the same work twice."""

    def __init__(
        self,
        unsettled: UnsettledJobs,
        outputs: OutputReader,
        clock: Clock,
        settings: Callable[[], LifecycleSettings],
        *,
        limit: int = LIMIT,
    ) -> None:
        self._unsettled = unsettled
        self._outputs = outputs
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._resting: dict[JobId, Instant] = {}  # until when broken jobs are left alone
        self._log = structlog.get_logger("jobs.validator")

    async def run(self) -> None:
        """Settle for ever; at once again while there is more to do."""
        while True:
            report = await self.run_once()
            if report.looked_at < self._limit:
                await self._clock.sleep(self._settings().validate_interval_s)

    async def run_once(self) -> ValidatorReport:
        """One round over at most `limit` jobs, besides those that rest."""
        now = self._clock.now()
        self._resting = {job_id: until for job_id, until in self._resting.items() if until > now}
        found = await self._unsettled.unsettled(self._limit + len(self._resting))
        jobs = [job for job in found if job.job_id not in self._resting][: self._limit]
        settlements = [settled for job in jobs if (settled := await self._settled(job, now)) is not None]
        current, lost = await self._write(settlements, now)
        settled_ids = {settlement.job_id for settlement in settlements} - lost
        return _report(jobs, [one for one in settlements if one.job_id in settled_ids], current)

    async def _settled(self, job: JobFacts, now: Instant) -> JobSettlement | None:
        """The change that settles the job; None when that failed."""
        try:
            view = view_of(job)
            groups = await self._groups(job, needs_comparison(view))
            return job_settlement(job, settle(view, groups), now)
        except Exception as error:  # whatever one job's files hold must not stop the others
            self._rest(job.job_id, now, error)
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

    async def _write(self, settlements: Sequence[JobSettlement], now: Instant) -> tuple[int, set[JobId]]:
        """Write all at once; when that fails, one by one, so that only what is wrong is left out.

        Returns how many were still current, and the jobs that could not be written.
        """
        if not settlements:
            return 0, set()
        try:
            return await self._unsettled.settle(settlements), set()
        except UnavailableError:
            raise
        except Exception as error:
            self._log.warning("settlements written one by one", because=str(error), jobs=len(settlements))
        current, lost = 0, set[JobId]()
        for settlement in settlements:
            try:
                current += await self._unsettled.settle([settlement])
            except UnavailableError:
                raise
            except Exception as error:
                self._rest(settlement.job_id, now, error)
                lost.add(settlement.job_id)
        return current, lost

    def _rest(self, job_id: JobId, now: Instant, error: Exception) -> None:
        self._resting[job_id] = later(now, REST_S)
        self._log.error("job not settled", job_id=job_id, error=str(error), kind=type(error).__name__)


def _report(jobs: Sequence[JobFacts], settled: Sequence[JobSettlement], current: int) -> ValidatorReport:
    before = {job.job_id: job.state for job in jobs}
    ended = [settlement.state for settlement in settled if before[settlement.job_id] is JobState.OPEN]
    return ValidatorReport(
        looked_at=len(jobs),
        current=current,
        validated=ended.count(JobState.VALID),
        failed=ended.count(JobState.FAILED),
        retried=sum(settlement.new_instances for settlement in settled),
        broken=len(jobs) - len(settled),
    )
