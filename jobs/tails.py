"""Copies late jobs: in batch tails within a cost limit, or in accelerated batches with deadline.rule = accelerated.

Tail: 1 find the batches in their tail; 2 read their open jobs, page by page; 3 choose the jobs worth a copy
(lifecycle/tail.py); 4 copy the unchanged ones with the longest remaining time. Repeating this makes no second copy.
Acceleration: 1 flag hosts and apps (domain/acceleration.py); 2 find the batches that are nearly done; 3 send their
unsent instances first, and copy open jobs with no recently sent instance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nlargest

import structlog

from domain.acceleration import (
    LEAST_DONE_FRACTION,
    LOOK_BACK_S,
    MOST_NOT_DONE,
    Acceleration,
    LowTurnaround,
    is_accelerated,
)
from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.jobs import InstanceState
from domain.settlement import ExtraCopy
from domain.units import BatchId, Instant, JobId, Seconds
from jobs.ports import AccelerationNotes, TailWork
from lifecycle.tail import LateCopy, accelerated_copy, copies_left, is_last, is_tail, tail_copy

BATCHES = 200  # maximum number read per round, first in order
JOBS = 500  # maximum number read per page of a batch
MOST_JOBS = 20_000  # maximum number per batch and round; the next round continues after them


@dataclass(frozen=True, slots=True)
class TailReport:
    """The result of one round: batches in their tail, copies made, and batches at their limit for copies."""

    batches: int = 0
    copies: int = 0
    capped: int = 0


class TailCopier:
    """Copies late jobs in batch tails. Runs in one process per cluster."""

    def __init__(self, work: TailWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._log = structlog.get_logger("jobs.tails")
        self._looked_up_to: dict[BatchId, JobId] = {}  # for batches with more open jobs than a round reads

    async def run_once(self) -> TailReport:
        """Run one round. Does nothing if the limit is 0, or under the rule `accelerated`, which makes copies itself."""
        settings = self._catalogue().settings
        if not traits_of(settings.deadline).copies_tails or settings.lifecycle.tail_overhead_fraction <= 0.0:
            return TailReport()
        feeder, lifecycle = settings.feeder, settings.lifecycle
        found = await self._work.tails(
            fraction=lifecycle.tail_fraction,
            jobs=feeder.tail_jobs,
            limit=BATCHES,
            unsent=lifecycle.tail_unsent_fraction,
        )
        tails = [batch for batch in found if is_tail(batch, feeder, lifecycle)]
        made = capped = 0
        active = {batch.batch_id for batch in tails}
        self._looked_up_to = {one: after for one, after in self._looked_up_to.items() if one in active}
        for batch in tails:
            copies, is_capped = await self._chosen(batch)
            capped += is_capped
            if copies:
                made += await self._work.add_copies(copies, now=self._clock.now())
        return TailReport(len(tails), made, capped)

    async def _chosen(self, batch: Batch) -> tuple[Sequence[ExtraCopy], bool]:
        """Return the copies to make, longest remaining time first, and whether the limit prevented further copies."""
        worthwhile = await self._worthwhile(batch)
        if not worthwhile:
            return [], False
        limited = [one for one in worthwhile if one.is_capped]
        room = 0
        if limited:  # because copy_use reads all jobs of the batch
            room = copies_left(await self._work.copy_use(batch.batch_id), self._catalogue().settings.lifecycle)
        chosen = [one for one in worthwhile if not one.is_capped]
        chosen += nlargest(room, limited, key=lambda one: (one.rest_s, -one.copy.job_id))
        for one in chosen:
            self._log.info(
                "late job copied",
                batch_id=batch.batch_id,
                job_id=one.copy.job_id,
                because=one.copy.because,
                lateness=round(one.lateness, 2),
                rest_s=round(one.rest_s),
            )
        return [one.copy for one in chosen], len(limited) > room

    async def _worthwhile(self, batch: Batch) -> Sequence[LateCopy]:
        settings, now = self._catalogue().settings, self._clock.now()
        last = batch.qos is QoS.AFAP or is_last(batch, settings.feeder, settings.lifecycle)
        found: list[LateCopy] = []
        looked_at, after = 0, self._looked_up_to.pop(batch.batch_id, JobId(0))
        while jobs := await self._work.tail_jobs(batch.batch_id, after=after, limit=JOBS, now=now):
            after, looked_at = jobs[-1].job_id, looked_at + len(jobs)
            copies = (tail_copy(job, is_last=last, now=now, settings=settings.lifecycle) for job in jobs)
            found.extend(copy for copy in copies if copy is not None)
            if looked_at >= MOST_JOBS:
                self._looked_up_to[batch.batch_id] = after
                break
        return found


ACCELERATED_BATCHES = 1_000  # maximum number read per round, first in order
ACCELERATED_JOBS = 500  # maximum number read per page of a batch


@dataclass(frozen=True, slots=True)
class AccelerationReport:
    """The result of one round: low-turnaround hosts, accelerable apps, accelerated batches, and the copies made."""

    hosts: int = 0
    apps: int = 0
    batches: int = 0
    copies: int = 0


class Accelerator:
    """Accelerates batches. Runs in one process per cluster; does nothing under other rules."""

    def __init__(
        self, work: TailWork, notes: AccelerationNotes, catalogue: Callable[[], Catalogue], clock: Clock
    ) -> None:
        self._work = work
        self._notes = notes
        self._catalogue = catalogue
        self._clock = clock
        self._log = structlog.get_logger("jobs.tails")

    async def run_once(self) -> AccelerationReport:
        """Recompute the flags of hosts, apps and batches, and copy jobs with no recently sent instance."""
        if not traits_of(self._catalogue().settings.deadline).accelerates:
            return AccelerationReport()
        now = self._clock.now()
        low = await self._work.low_turnaround(since=Instant(now - LOOK_BACK_S))
        short = await self._work.tails(
            fraction=1.0 - LEAST_DONE_FRACTION, jobs=MOST_NOT_DONE, limit=ACCELERATED_BATCHES
        )
        batches = [batch for batch in short if is_accelerated(batch.counts)]
        ids = frozenset(batch.batch_id for batch in batches)
        await self._notes.note_acceleration(Acceleration(now, low.hosts, low.apps, ids))
        copies = 0
        for batch in batches:
            copies += await self._hurry(batch, low, now)
        report = AccelerationReport(len(low.hosts), len(low.apps), len(batches), copies)
        self._log.info(
            "batches accelerated", hosts=report.hosts, apps=report.apps, batches=report.batches, copies=copies
        )
        return report

    async def _hurry(self, batch: Batch, low: LowTurnaround, now: Instant) -> int:
        """Make unsent instances urgent. Copy other jobs of which no instance was sent within the median turnaround."""
        median_s = low.median_s.get(batch.batch_id, Seconds(0.0))
        made, after = 0, JobId(0)
        while jobs := await self._work.tail_jobs(batch.batch_id, after=after, limit=ACCELERATED_JOBS, now=now):
            after = jobs[-1].job_id
            unsent = [job for job in jobs if any(one.state is InstanceState.UNSENT for one in job.instances)]
            await self._work.hasten([job.job_id for job in unsent])
            chosen = (accelerated_copy(job, median_s=median_s, now=now) for job in jobs)
            made += await self._work.add_copies([copy for copy in chosen if copy is not None], now=now)
        return made
