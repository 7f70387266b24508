"""The reference server's batch acceleration, hour by hour: who is quick, what is nearly done, and copies of that.

POLICY 2.7, for the rule `accelerated` alone: 1 flags of hosts and apps (domain/acceleration.py); 2 the batches that are
nearly done; 3 of their open jobs, what is unsent goes first, and what was not sent lately gets one more instance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from domain.acceleration import (
    LEAST_DONE_FRACTION,
    LOOK_BACK_S,
    MOST_NOT_DONE,
    Acceleration,
    LowTurnaround,
    is_accelerated,
)
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.jobs import InstanceState
from domain.settlement import TailJob
from domain.units import Instant, JobId, Seconds
from jobs.ports import AccelerationNotes, TailWork
from lifecycle.tail import accelerated_copy

BATCHES = 1_000  # looked at per round, first in order
JOBS = 500  # of a batch, at a time


@dataclass(frozen=True, slots=True)
class AccelerationReport:
    """One round: low-turnaround hosts, accelerable apps, accelerated batches, and the copies made."""

    hosts: int = 0
    apps: int = 0
    batches: int = 0
    copies: int = 0


class Accelerator:
    """Runs in one process per cluster; does nothing under another rule."""

    def __init__(
        self, work: TailWork, notes: AccelerationNotes, catalogue: Callable[[], Catalogue], clock: Clock
    ) -> None:
        self._work = work
        self._notes = notes
        self._catalogue = catalogue
        self._clock = clock
        self._log = structlog.get_logger("jobs.acceleration")

    async def run_once(self) -> AccelerationReport:
        """Flag hosts, apps and batches anew, and copy what was not sent lately."""
        if not traits_of(self._catalogue().settings.deadline).accelerates:
            return AccelerationReport()
        now = self._clock.now()
        low = await self._work.low_turnaround(since=Instant(now - LOOK_BACK_S))
        short = await self._work.tails(fraction=1.0 - LEAST_DONE_FRACTION, jobs=MOST_NOT_DONE, limit=BATCHES)
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
        """Unsent instances first; a copy of every other job of which nothing was sent within the batch's median."""
        median_s = low.median_s.get(batch.batch_id, Seconds(0.0))
        made, after = 0, JobId(0)
        while jobs := await self._work.tail_jobs(batch.batch_id, after=after, limit=JOBS, now=now):
            after = jobs[-1].job_id
            await self._work.hasten([job.job_id for job in jobs if _has_unsent(job)])
            chosen = (accelerated_copy(job, median_s=median_s, now=now) for job in jobs)
            made += await self._work.add_copies([copy for copy in chosen if copy is not None], now=now)
        return made


def _has_unsent(job: TailJob) -> bool:
    return any(one.state is InstanceState.UNSENT for one in job.instances)
