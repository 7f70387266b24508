"""The sample of hosts that called last."""

from __future__ import annotations

from administration.explain.sample import sample_of
from tests.stores import as_postgres
from tests.unit.scheduler.project import a_project


async def test_sample_is_empty_before_the_first_call() -> None:
    project = await a_project()
    await project.submit(2)

    found = await sample_of(as_postgres(project.store), project.array, project.shelf.held, project.clock)

    assert (found.hosts, found.jobs) == (0, 0)
