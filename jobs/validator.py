"""Settles changed jobs: compares outputs, chooses the canonical instance, requests more instances.

1 read the jobs to settle; 2 group the outputs to compare; 3 decide (lifecycle/settle.py); 4 write. A job that cannot be
settled is logged, counted, skipped for a while, and never delays others. Outputs whose contents must be read are
compared in the background, several jobs at once: a round waits for them briefly if few other jobs are left, and a
later round settles the rest.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from domain.clock import Clock
from domain.jobs import JobClass, JobState, output_file_name
from domain.settlement import ALL_JOBS, InstanceFacts, JobFacts, JobSettlement, JobShare
from domain.units import InstanceId, Instant, JobId
from jobs.comparisons import Compared, Comparison, Comparisons, OutputFile, TooSlowError, compare_here
from jobs.ports import UnsettledJobs
from jobs.writing import Resting, write_or_rest
from lifecycle.compare import comparer_for
from lifecycle.settle import give_up, needs_comparison, settle

LIMIT = 500  # jobs per round, and jobs queued for comparison; more stay in the database
PATIENCE_S = 2.0  # how long a round waits for comparisons
MANY_ATTEMPTS = 3  # of a comparison: logged as an error for operators

Settled = tuple[JobFacts, JobSettlement]

log = structlog.get_logger("jobs.validator")


@dataclass(frozen=True, slots=True)
class ValidatorReport:
    """The result of one round. `current` settlements were written; `broken` jobs could not be settled."""

    looked_at: int = 0
    current: int = 0
    validated: int = 0
    failed: int = 0
    retried: int = 0  # number of instances requested
    broken: int = 0
    more: bool = False  # the round was full


class Validator:
    """Settles the jobs of this process's `share()`.

    Two processes may settle a job at once when the shares change: the first settlement counts, and only one process
    compares the outputs. `max_lost()` returns the current lifecycle.max_lost_instances.
    """

    def __init__(
        self,
        unsettled: UnsettledJobs,
        comparisons: Comparisons,
        clock: Clock,
        *,
        max_lost: Callable[[], int],
        share: Callable[[], JobShare] = lambda: ALL_JOBS,
        limit: int = LIMIT,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._unsettled = unsettled
        self._comparisons = comparisons
        self._clock = clock
        self._max_lost = max_lost
        self._share = share
        self._limit = limit
        self._patience_s = patience_s
        self._resting: Resting[JobId] = Resting("job", log)
        self._waiting: OrderedDict[JobId, tuple[JobFacts, Comparison]] = OrderedDict()  # queued for comparison
        self._running: dict[asyncio.Task[Compared], JobFacts] = {}
        self._skips_content = False  # until a round is not full, because the queue was full

    async def run_once(self) -> ValidatorReport:
        """Run one round over at most `limit` jobs, excluding jobs in back-off and jobs being compared."""
        now = self._clock.now()
        self._resting.wake(now)
        resting, waiting = len(self._resting), len(self._waiting)
        jobs = await self._found(now)
        settled = [(job, one) for job in jobs if (one := self._settled_at_once(job, now)) is not None]
        current = await self._write(settled, now)
        is_busy = len(settled) + len(self._waiting) - waiting > self._limit // 2
        compared = await self._compare(0.0 if is_busy else self._patience_s)  # further jobs do not wait
        current += await self._write(compared, now)
        written = [pair for pair in (*settled, *compared) if pair[0].job_id not in self._resting]
        broken = len(self._resting) - resting
        return _report(written, current, looked_at=len(jobs), broken=broken, more=len(jobs) == self._limit)

    def drop_comparisons(self) -> None:
        """Cancel running and queued comparisons, because another process now settles and compares their jobs."""
        for task in self._running:
            if not task.cancel() and not task.cancelled():
                task.exception()  # retrieves it, so that asyncio does not log it
        self._running.clear()
        self._waiting.clear()

    async def _found(self, now: Instant) -> Sequence[JobFacts]:
        compared = self._waiting.keys() | {job.job_id for job in self._running.values()}
        limit = self._limit + len(self._resting) + len(compared)
        skips = self._skips_content and bool(self._waiting)
        found = await self._unsettled.unsettled(limit, now=now, share=self._share(), with_content=not skips)
        jobs = [job for job in found if job.job_id not in self._resting and job.job_id not in compared][: self._limit]
        self._skips_content = skips and len(jobs) == self._limit
        return jobs

    def _settled_at_once(self, job: JobFacts, now: Instant) -> JobSettlement | None:
        """Return the job's settlement. Return None if its outputs must be read first, or if settling failed."""
        try:
            comparison = _comparison_of(job, needs_comparison(job))
            if comparer_for(comparison.validator, comparison.tolerance).needs_content and comparison.outputs:
                if len(self._waiting) < self._limit:
                    self._waiting[job.job_id] = (job, comparison)
                else:
                    self._skips_content = True  # other jobs do not wait behind more of these
                return None
            return self._settled(job, compare_here(comparison, lambda _: None), now)
        except Exception as error:  # one bad job must not stop the rest
            self._resting.add(job.job_id, now, error)
            return None

    async def _compare(self, patience_s: float) -> Sequence[Settled]:
        """Start comparisons while children are free, wait briefly, and return the jobs whose comparison ended."""
        ended: list[Settled] = []
        until_s = self._clock.monotonic() + patience_s
        while True:
            await self._start_comparisons()
            left_s = max(0.0, until_s - self._clock.monotonic())
            if not self._running:
                return ended
            done, _ = await asyncio.wait(self._running, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                ended += self._ended(task, self._running.pop(task))
            if not done or left_s == 0.0:
                return ended

    async def _start_comparisons(self) -> None:
        free = max(0, self._comparisons.at_once - len(self._running))
        chosen = [self._waiting.popitem(last=False)[1] for _ in range(min(free, len(self._waiting)))]
        if not chosen:
            return
        ids = [job.job_id for job, _ in chosen]
        attempts = await self._unsettled.begin_comparisons(ids, now=self._clock.now())
        for job, comparison in chosen:
            if job.job_id not in attempts:
                continue  # already settled, or another process compares it
            if attempts[job.job_id] >= MANY_ATTEMPTS:
                log.error(
                    "comparing outputs again after failed attempts", job_id=job.job_id, attempts=attempts[job.job_id]
                )
            self._running[asyncio.create_task(self._comparisons.compare(comparison))] = job

    def _ended(self, task: asyncio.Task[Compared], job: JobFacts) -> Sequence[Settled]:
        now = self._clock.now()
        try:
            return [(job, self._settled(job, task.result(), now))]
        except TooSlowError as error:
            log.error("outputs cannot be compared, job failed", job_id=job.job_id, because=str(error))
            return [(job, give_up(job, str(error), now=now))]
        except Exception as error:  # unreadable files, or a child process that exited
            self._resting.add(job.job_id, now, error)
            return ()

    def _settled(self, job: JobFacts, compared: Compared, now: Instant) -> JobSettlement:
        return settle(job, compared.groups, now=now, max_lost=self._max_lost(), because=compared.because)

    async def _write(self, settled: Sequence[Settled], now: Instant) -> int:
        """Write the settlements and return how many were still current."""
        settlements = [settlement for _, settlement in settled]
        return await write_or_rest(
            settlements, self._unsettled.settle, key=lambda one: one.job_id, resting=self._resting, now=now
        )


def _comparison_of(job: JobFacts, ids: Sequence[InstanceId]) -> Comparison:
    outputs = {
        instance.instance_id: _files_of(instance, job.job_class)
        for instance in job.instances
        if instance.instance_id in ids
    }
    return Comparison(job.job_class.validator, job.job_class.tolerance, outputs, job.canonical_instance_id)


def _files_of(instance: InstanceFacts, job_class: JobClass) -> tuple[OutputFile, ...]:
    """Return the instance's outputs by their names in the job. Optional outputs may be missing."""
    brought = {upload.name: upload for upload in instance.uploads}
    named = [(output.name, output_file_name(instance.name, n)) for n, output in enumerate(job_class.outputs)]
    found = [(name, brought[file_name]) for name, file_name in named if file_name in brought]
    return tuple([OutputFile(name, upload.name, upload.nbytes, upload.md5) for name, upload in found])


def _report(settled: Sequence[Settled], current: int, *, looked_at: int, broken: int, more: bool) -> ValidatorReport:
    ended = [settlement.state for job, settlement in settled if job.state is JobState.OPEN]
    return ValidatorReport(
        looked_at=looked_at,
        current=current,
        validated=ended.count(JobState.VALID),
        failed=ended.count(JobState.FAILED),
        retried=sum(settlement.new_instances for _, settlement in settled),
        broken=broken,
        more=more,
    )
