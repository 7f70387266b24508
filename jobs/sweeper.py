"""Times out instances whose due date and grace have passed in silence, and counts due dates that passed.

Each round first notes that the project is alive: after an outage open due dates are moved before anything
is timed out, because no host could report meanwhile (POLICY 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from domain.clock import Clock
from domain.havs import HavEvent, HavEventKind
from domain.jobs import InstanceState
from domain.settings import LifecycleSettings
from domain.settlement import InstanceStep, Overdue
from domain.units import Instant
from jobs.outage import OutageWatch
from jobs.ports import OverdueWork
from jobs.settling import censored_sample
from lifecycle.machine import advance, host_record
from lifecycle.states import Event

LIMIT = 1_000  # instances per transaction
MOST_CHUNKS = 100  # per round


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One round. `came_due` counts instances whose due date passed since the last one, finished or not."""

    timed_out: int
    came_due: int
    moved: int  # due dates moved because of an outage


class Sweeper:
    """Runs in one process per cluster."""

    def __init__(
        self,
        work: OverdueWork,
        outages: OutageWatch,
        clock: Clock,
        settings: Callable[[], LifecycleSettings],
        *,
        limit: int = LIMIT,
    ) -> None:
        self._work = work
        self._outages = outages
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._log = structlog.get_logger("jobs.sweeper")

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await self.run_once()
            await self._clock.sleep(self._settings().sweep_interval_s)

    async def run_once(self) -> SweepReport:
        """One round."""
        outage = await self._outages.run_once()
        now = self._clock.now()
        report = SweepReport(await self._time_out(now), await self._work.count_due(now=now), outage.moved)
        if report.timed_out:
            self._log.info("instances timed out", timed_out=report.timed_out, came_due=report.came_due)
        return report

    async def _time_out(self, now: Instant) -> int:
        timed_out = 0
        for _ in range(MOST_CHUNKS):
            overdue = await self._work.overdue(now=now, limit=self._limit)
            made = await self._work.time_out([time_out_step(one, now) for one in overdue], now=now) if overdue else 0
            timed_out += made
            if made == 0 or len(overdue) < self._limit:
                break
        return timed_out


def time_out_step(overdue: Overdue, now: Instant) -> InstanceStep:
    """The step of an instance that is given up, with the sample it leaves in its host's statistics. Pure."""
    held = overdue.held
    step = advance(InstanceState.IN_PROGRESS, Event.TIMED_OUT, instance_id=held.instance_id)
    sample = censored_sample(sent_at=held.sent_at, due_at=held.due_at, now=now, est_runtime_s=held.est_runtime_s)
    kind = host_record(step.instructions)
    assert kind is HavEventKind.TIMED_OUT
    event = HavEvent(held.host_id, held.app_version_id, kind, now, tight=held.tight, ln_turnaround_ratio=sample)
    return InstanceStep(held.instance_id, InstanceState.IN_PROGRESS, step.state, sample, event)
