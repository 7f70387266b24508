"""Copies the late ones of a batch's jobs, within a cap on what that may cost.

1 the batches whose tail it is; 2 their open jobs, so many at a time; 3 lifecycle/tail.py says which are worth a copy;
4 the copies of those with the longest to go are made, each only while its job is as it was looked at. Doing it again
makes no other copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nlargest

import structlog

from domain.batches import Batch, QoS
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.settlement import ExtraCopy
from domain.units import BatchId, JobId
from jobs.ports import TailWork
from lifecycle.tail import LateCopy, copies_left, is_last, is_tail, tail_copy

BATCHES = 200  # looked at per round, first in order
JOBS = 500  # of a batch, at a time
MOST_JOBS = 20_000  # of a batch, in a round; the next one goes on behind them


@dataclass(frozen=True, slots=True)
class TailReport:
    """One round. `copies` were made; `capped` batches may have no more."""

    batches: int = 0
    copies: int = 0
    capped: int = 0


class TailCopier:
    """Runs in one process per cluster."""

    def __init__(self, work: TailWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._log = structlog.get_logger("jobs.tails")
        self._looked_up_to: dict[BatchId, JobId] = {}  # of batches with more open jobs than a round looks at

    async def run_once(self) -> TailReport:
        """One look at every tail. Nothing under the rule `accelerated`, which has copies of its own, or a cap of 0."""
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
        """The copies a batch gets now, and whether there would be more without the cap: the longest to go first."""
        worthwhile = await self._worthwhile(batch)
        if not worthwhile:
            return [], False
        limited = [one for one in worthwhile if one.is_capped]
        room = 0
        if limited:  # it takes a look at every job of the batch
            room = copies_left(await self._work.copy_use(batch.batch_id), self._catalogue().settings.lifecycle)
        chosen = [one for one in worthwhile if not one.is_capped]
        chosen += nlargest(room, limited, key=lambda one: (one.rest_s, -one.copy.job_id))
        for one in chosen:
            self._log.info("last job copied", batch_id=batch.batch_id, job_id=one.copy.job_id, because=one.copy.because)
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
