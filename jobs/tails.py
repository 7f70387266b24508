"""Copies the last jobs of batches that would keep everybody waiting, within a cap on what that may cost.

1 the batches whose tail it is; 2 their open jobs, so many at a time; 3 lifecycle/tail.py says which are worth a copy;
4 the copies of those that take the longest are made, each only while its job is as it was looked at. Doing it again
makes no other copy.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.settings import DeadlineRule
from domain.settlement import BESIDE_BATCHES, BESIDE_WITHIN_S, NOTHING_BESIDE, ExtraCopy, TailJob, WorkBeside
from domain.units import Instant, JobId, Seconds
from jobs.ports import TailWork
from lifecycle.tail import copies_left, is_tail, job_rest_s, tail_copy, tail_fraction

BATCHES = 200  # looked at per round, first in order
JOBS = 500  # of a batch, at a time
Offered = tuple[Seconds, int, ExtraCopy]  # how long the job is likely to take yet, less its id, the copy
RETRY_FRACTION = 0.5  # of the delay bound: what a good host needs while none was measured


@dataclass(frozen=True, slots=True)
class TailReport:
    """One round. `copies` were made; `capped` batches may have no more."""

    batches: int = 0
    copies: int = 0
    capped: int = 0


class _Longest:
    """The `most` copies whose jobs are likely to keep everybody waiting the longest, of those offered."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.found: list[Offered] = []  # a heap
        self.is_capped = False  # something was left out

    def offer(self, one: Offered) -> None:
        heapq.heappush(self.found, one)
        if len(self.found) > self._most:
            heapq.heappop(self.found)
            self.is_capped = True


class TailCopier:
    """Runs in one process per cluster."""

    def __init__(self, work: TailWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._log = structlog.get_logger("jobs.tails")

    async def run_once(self) -> TailReport:
        """One look at every tail. Nothing under the rule `accelerated`, which has copies of its own, or a cap of 0."""
        settings = self._catalogue().settings
        if settings.deadline.rule is DeadlineRule.ACCELERATED or settings.lifecycle.tail_overhead_fraction <= 0.0:
            return TailReport()
        feeder, lifecycle = settings.feeder, settings.lifecycle
        fraction = tail_fraction(feeder, lifecycle)
        unsent = lifecycle.afap_unsent_fraction
        found = await self._work.tails(fraction=fraction, jobs=feeder.tail_jobs, limit=BATCHES, afap_unsent=unsent)
        tails = [batch for batch in found if is_tail(batch, feeder, lifecycle)]
        made = capped = 0
        for batch in tails:
            copies, is_capped = await self._chosen(batch)
            capped += is_capped
            if copies:
                made += await self._work.add_copies(copies, now=self._clock.now())
        return TailReport(len(tails), made, capped)

    async def _chosen(self, batch: Batch) -> tuple[list[ExtraCopy], bool]:
        """The copies a batch gets now, and whether there would be more without the cap.

        Those first that are likely to keep everybody waiting the longest.
        """
        every: _Longest | None = None  # made when there is something to copy: it takes a look at every job
        firsts: _Longest | None = None
        after, now = JobId(0), self._clock.now()
        while jobs := await self._work.tail_jobs(batch.batch_id, after=after, limit=JOBS, now=now):
            after = jobs[-1].job_id
            for rest_s, copy in self._worthwhile(batch, jobs, now):
                if every is None or firsts is None:
                    every, firsts = await self._within_caps(batch)
                (every if copy.tail_copies else firsts).offer((rest_s, -copy.job_id, copy))
        if every is None or firsts is None:
            return [], False
        for one in firsts.found:
            every.offer(one)
        copies = [copy for _, _, copy in sorted(every.found, reverse=True)]
        for copy in copies:
            self._log.info("last job copied", batch_id=batch.batch_id, job_id=copy.job_id, because=copy.because)
        return copies, every.is_capped or firsts.is_capped

    async def _within_caps(self, batch: Batch) -> tuple[_Longest, _Longest]:
        """Room for all copies the batch may still have, and for those of jobs without one."""
        wanted = await self._work.instances_wanted(batch.batch_id)
        beside = await self._beside(batch)
        settings, counts = self._catalogue().settings.lifecycle, batch.counts
        every = copies_left(counts, wanted=wanted, beside=beside, settings=settings)
        firsts = copies_left(counts, wanted=wanted, beside=beside, settings=settings, first=True)
        return _Longest(every), _Longest(firsts)

    async def _beside(self, batch: Batch) -> WorkBeside:
        """What pays for copies besides the batch itself: nothing for one that has time."""
        if batch.qos is not QoS.AFAP:
            return NOTHING_BESIDE
        return await self._work.work_beside(
            batch, since=Instant(self._clock.now() - BESIDE_WITHIN_S), most=BESIDE_BATCHES
        )

    def _worthwhile(self, batch: Batch, jobs: Sequence[TailJob], now: Instant) -> list[tuple[Seconds, ExtraCopy]]:
        catalogue = self._catalogue()
        measured_s = min(catalogue.retry_turnarounds_s(batch.app_id), default=None)
        found = []
        for job in jobs:
            copy = tail_copy(
                job,
                qos=batch.qos,
                good_host_s=measured_s or Seconds(RETRY_FRACTION * job.job_class.delay_bound_s),
                now=now,
                settings=catalogue.settings.lifecycle,
            )
            if copy is not None:
                found.append((job_rest_s(job, now=now), copy))
        return found
