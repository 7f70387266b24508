"""Tests that a server clock set forward and back costs volunteers nothing."""

from __future__ import annotations

import pytest

from domain.jobs import InstanceState
from domain.units import DAY_S, Instant, later
from tests.builders import NOW
from tests.unit.jobs.projects import a_project
from tests.unit.jobs.test_sweeper import HOUR_S, Project


@pytest.fixture
async def project() -> Project:
    return Project(await a_project())


async def test_forward_clock_jump_extends_due_dates(project: Project) -> None:
    """A jump looks like an outage in which no host could report: each due date moves by its length."""
    [job] = await project.send()
    await project.sweep_at(600.0)
    project.clock.time = later(NOW, 600.0 + 2 * DAY_S)

    report = await project.sweeper.run_once()

    assert (report.timed_out, report.moved) == (0, 1)
    assert await project.state(job) is InstanceState.IN_PROGRESS


async def test_backward_clock_step_never_times_out_early(project: Project) -> None:
    [job] = await project.send()
    await project.sweep_at(600.0)
    project.clock.time = later(NOW, 600.0 + 2 * DAY_S)
    await project.sweeper.run_once()
    project.clock.time = later(NOW, 610.0)

    found = []
    for _ in range(3):
        found.append((await project.sweeper.run_once()).timed_out)
        project.clock.time = Instant(project.clock.time + HOUR_S)

    assert found == [0, 0, 0]
    assert await project.state(job) is InstanceState.IN_PROGRESS


async def test_short_clock_jump_times_out_only_due_instances(project: Project) -> None:
    """Nine minutes, with ten minutes of grace: no instance that is in time by the right clock times out."""
    [job] = await project.send()
    await project.sweep_at(HOUR_S)
    project.clock.time = later(NOW, HOUR_S + 540.0)

    assert (await project.sweeper.run_once()).timed_out == 0
    assert await project.state(job) is InstanceState.IN_PROGRESS
