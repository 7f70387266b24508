"""Which hosts a batch could have, of those that called last."""

from __future__ import annotations

from administration.explain.sample import sample_of
from tests.unit.scheduler.project import a_project


async def test_a_project_that_nobody_has_called_yet_has_no_host_for_it() -> None:
    project = await a_project()
    await project.submit(2)

    found = await sample_of(project.store, project.array, project.shelf.held, project.clock)

    assert (found.hosts, found.jobs) == (0, 0)
