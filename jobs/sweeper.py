"""Periodic tasks that detect outages, time instances out, and move jobs that ended long ago to the history.

Each round first records that the project is up. After an outage, due dates are shifted before any instance is timed
out, because no host could report during the outage (docs/guarantees.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from domain.clock import Clock
from domain.dispatch import InstanceStep
from domain.havs import HavEvent, HavEventKind
from domain.history import START, MovedJobs
from domain.jobs import InstanceState
from domain.settings import LifecycleSettings, StorageSettings
from domain.settlement import OutageReport, Overdue
from domain.units import InstanceId, Instant, later
from jobs.ports import EndedWork, Outages, OverdueWork
from jobs.writing import Resting, write_or_rest
from lifecycle.states import Event, advance, host_record
from lifecycle.turnaround import censored_sample, least_outage_s, yardstick_s

MOVED_AT_ONCE = 5_000  # due dates shifted per transaction


class OutageWatch:
    """Records in each round that the project is alive. A long gap between two records counts as an outage."""

    def __init__(
        self, outages: Outages, clock: Clock, settings: Callable[[], LifecycleSettings], *, limit: int = MOVED_AT_ONCE
    ) -> None:
        self._outages = outages
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._log = structlog.get_logger("jobs.sweeper")

    async def run_once(self) -> OutageReport:
        """Record that the project is alive, and shift some due dates if there was an outage.

        Nothing may be timed out until a report says that no `more` remain.
        """
        report = await self._outages.note_alive(
            now=self._clock.now(), outage_at_least_s=least_outage_s(self._settings()), limit=self._limit
        )
        if report.moved:
            self._log.warning(
                "due dates shifted after an outage", by_s=report.by_s, moved=report.moved, more=report.more
            )
        return report


LIMIT = 1_000  # instances per round


@dataclass(frozen=True, slots=True)
class SweepReport:
    """The result of one round. `came_due`: instances whose due date passed since the last round, finished or not.

    `more`: the round was full, or due dates remain to be shifted for an outage, which blocks all timeouts.
    """

    timed_out: int = 0
    came_due: int = 0
    moved: int = 0  # number of due dates shifted for an outage
    broken: int = 0  # number of instances whose timeout could not be written
    more: bool = False


class Sweeper:
    """Times out instances. Runs in one process per cluster."""

    def __init__(self, work: OverdueWork, outages: OutageWatch, clock: Clock, *, limit: int = LIMIT) -> None:
        self._work = work
        self._outages = outages
        self._clock = clock
        self._limit = limit
        self._log = structlog.get_logger("jobs.sweeper")
        self._resting: Resting[InstanceId] = Resting("instance", self._log)

    async def run_once(self) -> SweepReport:
        """Run one round over at most `limit` overdue instances, excluding instances in back-off."""
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
    """Return the step for a timed-out instance, with the sample for its host's statistics. Pure."""
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


JOBS_MOVED_AT_ONCE = 500  # jobs examined per step
INTERVAL_S = 600.0  # between two passes over all jobs
REST = 3.0  # multiple of a step's duration: moving uses a quarter of a connection, so that requests come first


class HistoryMover:
    """Moves ended jobs to the history. Runs in one process per cluster; after an interruption it starts over."""

    def __init__(
        self, work: EndedWork, clock: Clock, settings: Callable[[], StorageSettings], *, limit: int = JOBS_MOVED_AT_ONCE
    ) -> None:
        self._work = work
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._after = START
        self._jobs = 0  # moved since the start of this pass
        self._log = structlog.get_logger("jobs.sweeper")

    async def run_once(self) -> MovedJobs:
        """Run one step, and pause before the next if there is more to do."""
        began_s = self._clock.monotonic()
        before = later(self._clock.now(), -self._settings().keep_ended_s)
        report = await self._work.move_ended(before=before, after=self._after, limit=self._limit)
        self._after = report.after
        self._jobs += report.jobs
        if report.more:
            await self._clock.sleep(REST * (self._clock.monotonic() - began_s))
        elif self._jobs:
            self._log.info("jobs moved to the history", jobs=self._jobs, ended_before=before)
            self._jobs = 0
        return report
