"""Silence past due date and grace is a time-out, unless it was us who could not be reached."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.havs import HavEventKind
from domain.jobs import InstanceState
from domain.settings import LifecycleSettings
from domain.settlement import Overdue
from domain.units import Flop, Instant, JobId, Seconds, later
from jobs.outage import OutageReport, OutageWatch
from jobs.settling import censored_sample
from jobs.sweeper import Sweeper, SweepReport, time_out_step
from store.memory import MemoryStore
from tests.builders import NOW, a_held
from tests.unit.jobs.projects import HandClock, a_project
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch

HOUR_S = 3600.0


class Project:
    """Instances sent at NOW, due after an hour, with 10 minutes of grace."""

    def __init__(self, store: MemoryStore, *, limit: int = 100) -> None:
        self.store = store
        self.clock = HandClock()
        self.watch = OutageWatch(store.outages, self.clock, LifecycleSettings)
        self.sweeper = Sweeper(store.overdue, self.watch, self.clock, LifecycleSettings, limit=limit)

    async def send(self, jobs: int = 1) -> list[JobId]:
        batch = await a_submitted_batch(self.store, jobs=jobs)
        host = await a_registered_host(self.store)
        due_at = later(NOW, HOUR_S)
        values: dict[str, Any] = {"due_at": due_at, "timeout_at": later(due_at, 600.0)}
        return [(await a_sent_instance(self.store, batch.batch_id, host, **values)).job_id for _ in range(jobs)]

    async def sweep_at(self, after_s: float) -> SweepReport:
        """Sweep with notes of life in between, as a project does that was never away."""
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


async def test_more_than_a_chunk_times_out_in_one_round() -> None:
    project = Project(await a_project(), limit=2)
    await project.send(jobs=5)
    assert (await project.sweep_at(2 * HOUR_S)).timed_out == 5


async def test_a_time_out_marks_its_job_and_its_host(project: Project) -> None:
    await project.send()
    await project.sweep_at(2 * HOUR_S)
    [facts] = await project.store.unsettled.unsettled(10)
    assert facts.instances[0].turnaround_sample == math.log(10.0)
    assert facts.instances[0].host_id is not None
    _, [hav] = await project.store.views.host(facts.instances[0].host_id)
    assert (hav.n_timeout, hav.n_due, hav.relaxed.n, hav.relaxed.total) == (1, 1, 1.0, math.log(10.0))


# ------------------------------------------------------------------ outages


async def test_after_an_outage_open_due_dates_move_before_anything_times_out(project: Project) -> None:
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


@given(
    given_s=st.floats(0.0, 1e7),
    silent_s=st.floats(0.0, 1e7),
    est_runtime_s=st.floats(0.0, 1e7),
)
def test_a_time_out_never_counts_less_than_what_the_host_was_given(
    given_s: float, silent_s: float, est_runtime_s: float
) -> None:
    sample = censored_sample(
        sent_at=Instant(0.0),
        due_at=Instant(given_s),
        now=Instant(silent_s),
        est_runtime_s=Seconds(est_runtime_s),
    )
    ratio = math.exp(sample)
    runtime_s = max(1.0, est_runtime_s)
    assert ratio >= 10.0 * (1 - 1e-12)
    assert ratio * runtime_s >= max(given_s, silent_s) * (1 - 1e-9)
    assert ratio <= max(10.0, max(given_s, silent_s) / runtime_s) * (1 + 1e-9)
