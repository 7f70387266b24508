"""Tests that silence beyond due date and grace is a time-out, except after an outage of the server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from domain.dispatch import InstanceStep
from domain.errors import MusterError, UnavailableError
from domain.havs import HavEventKind
from domain.history import START, JobPlace, MovedJobs
from domain.jobs import InstanceState
from domain.settings import LifecycleSettings, StorageSettings
from domain.settlement import OutageReport, Overdue
from domain.units import BatchId, Flop, InstanceId, Instant, JobId, Seconds, later
from jobs.sweeper import REST, HistoryMover, OutageWatch, Sweeper, SweepReport, time_out_step
from tests.builders import NOW, a_held
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock, a_project
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch

HOUR_S = 3600.0


class Project:
    """Instances sent at NOW, due after an hour, with 10 minutes of grace."""

    def __init__(self, store: MemoryStore, *, limit: int = 100) -> None:
        self.store = store
        self.clock = HandClock()
        self.watch = OutageWatch(store.outages, self.clock, LifecycleSettings, limit=2)
        self.sweeper = Sweeper(store.overdue, self.watch, self.clock, limit=limit)

    async def send(self, jobs: int = 1) -> list[JobId]:
        batch = await a_submitted_batch(self.store, jobs=jobs)
        host = await a_registered_host(self.store)
        due_at = later(NOW, HOUR_S)
        values: dict[str, Any] = {"due_at": due_at, "timeout_at": later(due_at, 600.0)}
        return [(await a_sent_instance(self.store, batch.batch_id, host, **values)).job_id for _ in range(jobs)]

    async def sweep_at(self, after_s: float) -> SweepReport:
        """Sweep, with alive records in between, like a project without an outage."""
        while self.clock.time < NOW + after_s:
            await self.watch.run_once()
            self.clock.time = Instant(min(self.clock.time + 300.0, NOW + after_s))
        return await self.sweeper.run_once()

    async def state(self, job_id: JobId) -> InstanceState:
        [row] = (await self.store.views.job(job_id)).instances
        return row.state


@pytest.fixture
async def project() -> Project:
    return Project(await a_project())


async def test_an_instance_is_waited_for_through_its_grace(project: Project) -> None:
    [job] = await project.send()
    assert await project.sweep_at(HOUR_S + 599.0) == SweepReport(timed_out=0, came_due=1, moved=0)
    assert await project.state(job) is InstanceState.IN_PROGRESS


async def test_after_its_grace_it_times_out(project: Project) -> None:
    [job] = await project.send()
    assert await project.sweep_at(HOUR_S + 601.0) == SweepReport(timed_out=1, came_due=1, moved=0)
    assert await project.state(job) is InstanceState.TIMED_OUT


async def test_it_times_out_once(project: Project) -> None:
    await project.send()
    await project.sweep_at(HOUR_S + 601.0)
    assert await project.sweep_at(HOUR_S + 602.0) == SweepReport(timed_out=0, came_due=0, moved=0)


async def test_a_full_round_says_that_more_is_waiting() -> None:
    project = Project(await a_project(), limit=2)
    await project.send(jobs=5)
    reports = [await project.sweep_at(2 * HOUR_S) for _ in range(3)]
    assert [(report.timed_out, report.more) for report in reports] == [(2, True), (2, True), (1, False)]


async def test_a_time_out_marks_its_job_and_its_host(project: Project) -> None:
    await project.send()
    await project.sweep_at(2 * HOUR_S)
    [facts] = await project.store.unsettled.unsettled(10, now=NOW)
    assert facts.instances[0].turnaround_sample == math.log(10.0)
    assert facts.instances[0].host_id is not None
    _, [hav] = await project.store.views.host(facts.instances[0].host_id)
    assert (hav.n_timeout, hav.n_due, hav.relaxed.n, hav.relaxed.total) == (1, 1, 1.0, math.log(10.0))


# ------------------------------------------------------------------ what cannot be written


class Picky:
    """Overdue instances 1 to n; the store refuses to write some of them."""

    def __init__(self, number: int, *refused: int, available: bool = True) -> None:
        self.open = [InstanceId(one) for one in range(1, number + 1)]
        self.refused = refused
        self.available = available

    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        found = [a_held(instance_id=one, sent_at=NOW, due_at=later(NOW, 60.0)) for one in self.open[:limit]]
        return [Overdue(held, Flop(1e12)) for held in found]

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        if not self.available:
            raise UnavailableError("gone")
        ids = [step.instance_id for step in steps]
        if set(ids) & set(self.refused):
            raise MusterError("cannot be written")
        self.open = [one for one in self.open if one not in ids]
        return len(ids)

    async def count_due(self, *, now: Instant) -> int:
        return 0


def a_sweeper(work: Picky, clock: HandClock) -> Sweeper:
    return Sweeper(work, OutageWatch(MemoryStore().outages, clock, LifecycleSettings), clock, limit=3)


async def test_an_instance_that_cannot_be_written_is_left_out_alone() -> None:
    work = Picky(5, 1, 3)
    sweeper = a_sweeper(work, HandClock())
    assert await sweeper.run_once() == SweepReport(timed_out=1, broken=2, more=True)
    assert await sweeper.run_once() == SweepReport(timed_out=2)
    assert work.open == [1, 3]


async def test_failed_time_out_is_retried_after_a_minute() -> None:
    work, clock = Picky(2, 1), HandClock()
    sweeper = a_sweeper(work, clock)
    await sweeper.run_once()
    work.refused = ()
    assert await sweeper.run_once() == SweepReport()
    clock.time = later(NOW, 60.0)
    assert await sweeper.run_once() == SweepReport(timed_out=1)


async def test_a_store_that_is_away_is_no_fault_of_the_instances() -> None:
    work = Picky(2, available=False)
    sweeper = a_sweeper(work, HandClock())
    with pytest.raises(UnavailableError):
        await sweeper.run_once()
    work.available = True
    assert (await sweeper.run_once()).timed_out == 2


# ------------------------------------------------------------------ outages


async def test_due_dates_shift_before_time_outs_after_outage(project: Project) -> None:
    [job] = await project.send()
    await project.sweep_at(600.0)
    project.clock.time = later(NOW, 600.0 + 5 * HOUR_S)
    assert await project.sweeper.run_once() == SweepReport(timed_out=0, came_due=0, moved=1)
    assert await project.state(job) is InstanceState.IN_PROGRESS
    assert (await project.sweep_at(6 * HOUR_S + 601.0)).timed_out == 1


async def test_what_was_overdue_before_the_outage_times_out_after_it(project: Project) -> None:
    [job] = await project.send()
    await project.sweep_at(HOUR_S + 550.0)
    project.clock.time = later(NOW, HOUR_S + 650.0)
    await project.watch.run_once()
    project.clock.time = later(NOW, 9 * HOUR_S)
    assert await project.sweeper.run_once() == SweepReport(timed_out=1, came_due=0, moved=0)
    assert await project.state(job) is InstanceState.TIMED_OUT


async def test_the_first_note_of_life_moves_nothing(project: Project) -> None:
    await project.send()
    assert await project.watch.run_once() == OutageReport()


async def test_a_short_absence_moves_nothing(project: Project) -> None:
    await project.send()
    await project.watch.run_once()
    project.clock.time = later(NOW, 599.0)
    assert await project.watch.run_once() == OutageReport()


async def test_an_absence_of_exactly_the_limit_moves(project: Project) -> None:
    await project.send()
    await project.watch.run_once()
    project.clock.time = later(NOW, 600.0)
    assert await project.watch.run_once() == OutageReport(Seconds(600.0), moved=1)


async def test_nothing_times_out_before_every_due_date_has_moved(project: Project) -> None:
    await project.send(jobs=5)
    await project.sweep_at(600.0)
    project.clock.time = later(NOW, 5 * HOUR_S)

    reports = [await project.sweeper.run_once() for _ in range(3)]

    assert [(report.moved, report.more) for report in reports] == [(2, True), (2, True), (1, False)]
    assert sum(report.timed_out + report.came_due for report in reports) == 0


async def test_a_restart_in_the_midst_of_the_move_goes_on_with_it(project: Project) -> None:
    await project.send(jobs=5)
    await project.sweep_at(600.0)
    project.clock.time = later(NOW, 5 * HOUR_S)
    await project.sweeper.run_once()

    restarted = Project(project.store)
    restarted.clock.time = later(NOW, 5 * HOUR_S + 10.0)
    reports = [await restarted.sweeper.run_once() for _ in range(2)]

    assert [(report.moved, report.timed_out) for report in reports] == [(2, 0), (1, 0)]


async def test_rounds_that_are_far_apart_by_setting_are_no_outage(project: Project) -> None:
    settings = LifecycleSettings(sweep_interval_s=Seconds(1000.0))
    watch = OutageWatch(project.store.outages, project.clock, lambda: settings)
    await watch.run_once()
    project.clock.time = later(NOW, 2000.0)
    assert await watch.run_once() == OutageReport()
    project.clock.time = later(NOW, 6000.0)
    assert (await watch.run_once()).by_s == 4000.0


# ------------------------------------------------------------------ the sample a time-out leaves


def test_a_time_out_step_tells_the_host() -> None:
    held = a_held(sent_at=NOW, due_at=later(NOW, HOUR_S), est_runtime_s=Seconds(60.0), tight=True)
    step = time_out_step(Overdue(held, Flop(1e12)), later(NOW, 2 * HOUR_S))
    assert (step.from_state, step.to_state) == (InstanceState.IN_PROGRESS, InstanceState.TIMED_OUT)
    assert step.turnaround_sample == math.log(120.0)
    assert step.hav_event is not None
    assert (step.hav_event.kind, step.hav_event.tight) == (HavEventKind.TIMED_OUT, True)
    assert step.hav_event.ln_turnaround_ratio == step.turnaround_sample


class SlowWork:
    """Returns `steps` in turn, each after two seconds; records its calls."""

    def __init__(self, clock: HandClock, steps: Sequence[MovedJobs | Exception]) -> None:
        self._clock = clock
        self._steps = list(steps)
        self.asked: list[tuple[Instant, JobPlace, int]] = []

    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        self.asked.append((before, after, limit))
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        await self._clock.sleep(2.0)
        return step


def a_mover(*steps: MovedJobs | Exception, keep_s: float = 100.0) -> tuple[HistoryMover, SlowWork, HandClock]:
    clock = HandClock()
    work = SlowWork(clock, steps)
    return HistoryMover(work, clock, lambda: StorageSettings(keep_ended_s=Seconds(keep_s)), limit=7), work, clock


PLACE = JobPlace(BatchId(3), JobId(41))


async def test_what_ended_before_the_time_it_is_kept_is_moved() -> None:
    mover, work, _ = a_mover(MovedJobs())

    await mover.run_once()

    assert work.asked == [(later(NOW, -100.0), START, 7)]


async def test_step_continues_and_restarts_after_last_job() -> None:
    mover, work, _ = a_mover(MovedJobs(5, 6, PLACE, more=True), MovedJobs(), MovedJobs())

    reports = [await mover.run_once() for _ in range(3)]

    assert [report.more for report in reports] == [True, False, False]
    assert [after for _, after, _ in work.asked] == [START, PLACE, START]


async def test_it_rests_longer_than_it_works_while_there_is_more() -> None:
    mover, _, clock = a_mover(MovedJobs(5, 6, PLACE, more=True), MovedJobs())

    await mover.run_once()
    assert clock.time == NOW + 2.0 + REST * 2.0
    await mover.run_once()
    assert clock.time == NOW + 4.0 + REST * 2.0


async def test_a_step_that_failed_is_tried_again_from_the_same_place() -> None:
    mover, work, _ = a_mover(MovedJobs(5, 6, PLACE, more=True), OSError("no"), MovedJobs())

    await mover.run_once()
    with pytest.raises(OSError, match="no"):
        await mover.run_once()
    await mover.run_once()

    assert [after for _, after, _ in work.asked] == [START, PLACE, PLACE]
