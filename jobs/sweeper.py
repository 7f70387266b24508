"""Times out instances whose due date and grace have passed in silence, and counts due dates that passed.

Each round first notes that the project is alive: after an outage open due dates are moved before anything
is timed out, because no host could report meanwhile (POLICY 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from domain.clock import Clock
from domain.havs import HavEvent, HavEventKind
from domain.jobs import InstanceState
from domain.settlement import InstanceStep, Overdue
from domain.units import InstanceId, Instant
from jobs.outage import OutageWatch
from jobs.ports import OverdueWork
from jobs.writing import Resting, write_or_rest
from lifecycle.states import Event, advance, host_record
from lifecycle.turnaround import censored_sample, yardstick_s

LIMIT = 1_000  # instances per round


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One round. `came_due` counts instances whose due date passed since the last one, finished or not.

    `more`: the round was full, or due dates have yet to be moved because of an outage; until they are,
    nothing is timed out or counted.
    """

    timed_out: int = 0
    came_due: int = 0
    moved: int = 0  # due dates moved because of an outage
    broken: int = 0  # instances whose time-out could not be written
    more: bool = False


class Sweeper:
    """Runs in one process per cluster."""

    def __init__(self, work: OverdueWork, outages: OutageWatch, clock: Clock, *, limit: int = LIMIT) -> None:
        self._work = work
        self._outages = outages
        self._clock = clock
        self._limit = limit
        self._log = structlog.get_logger("jobs.sweeper")
        self._resting: Resting[InstanceId] = Resting("instance", self._log)

    async def run_once(self) -> SweepReport:
        """One round over at most `limit` overdue instances, besides those that rest."""
        outage = await self._outages.run_once()
        if outage.more:
            return SweepReport(moved=outage.moved, more=True)
        now = self._clock.now()
        timed_out = await self._time_out(now)
        report = replace(timed_out, came_due=await self._work.count_due(now=now), moved=outage.moved)
        if report.timed_out:
            self._log.info("instances timed out", timed_out=report.timed_out, came_due=report.came_due)
        return report

    async def _time_out(self, now: Instant) -> SweepReport:
        self._resting.wake(now)
        found = await self._work.overdue(now=now, limit=self._limit + len(self._resting))
        overdue = [one for one in found if one.held.instance_id not in self._resting][: self._limit]
        steps = [time_out_step(one, now) for one in overdue]

        async def write(some: Sequence[InstanceStep]) -> int:
            return await self._work.time_out(some, now=now)

        made = await write_or_rest(steps, write, key=lambda step: step.instance_id, resting=self._resting, now=now)
        broken = sum(step.instance_id in self._resting for step in steps)
        return SweepReport(timed_out=made, broken=broken, more=len(overdue) == self._limit)


def time_out_step(overdue: Overdue, now: Instant) -> InstanceStep:
    """The step of an instance that is given up, with the sample it leaves in its host's statistics. Pure."""
    held = overdue.held
    step = advance(InstanceState.IN_PROGRESS, Event.TIMED_OUT, instance_id=held.instance_id)
    usual_s = yardstick_s(
        tight=held.tight, est_runtime_s=held.est_runtime_s, median_turnaround_s=held.median_turnaround_s
    )
    sample = censored_sample(sent_at=held.sent_at, due_at=held.due_at, now=now, yardstick_s=usual_s)
    kind = host_record(step.instructions)
    assert kind is HavEventKind.TIMED_OUT
    event = HavEvent(held.host_id, held.app_version_id, kind, now, tight=held.tight, ln_turnaround_ratio=sample)
    return InstanceStep(held.instance_id, InstanceState.IN_PROGRESS, step.state, sample, event)
