"""A job of a batch that ended long ago is still shown, and late reports of it are acknowledged."""

from __future__ import annotations

import pytest

from administration.purge import months_before, purge_months
from demo.load.jobs import VolunteerTask
from domain.errors import NotFoundError
from domain.jobs import InstanceState
from domain.units import DAY_S, JobId
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import LiveServer
from transfer.project_files import ProjectFiles
from wire.messages import STATE_UPLOADED, HeldResult

S = InstanceState


async def a_job_of_the_history(server: LiveServer) -> tuple[JobId, Host, VolunteerTask]:
    """A completed job, moved to the history ten days later."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.work(task)
    await server.validate()
    job = await server.job_of(batch_id)
    await server.forward(10 * DAY_S)
    await server.sweep()
    await server.history()
    [month] = await server.store.history.months()
    assert month.jobs == 1
    return job.job_id, host, task


async def test_moved_job_is_shown_as_before(server: LiveServer) -> None:
    job_id, _, task = await a_job_of_the_history(server)

    shown = await server.create("GET", f"/jobs/{job_id}")

    assert shown["state"] == "valid"
    [instance] = shown["instances"]
    assert (instance["state"], [one["name"] for one in instance["uploads"]]) == ("valid", [f"{task.result.name}_r0"])
    listed = await server.create("GET", f"/batches/{shown['batch_id']}/jobs")
    assert [one["job_id"] for one in listed["jobs"]] == [job_id]


async def test_report_of_a_moved_job_is_acknowledged(server: LiveServer) -> None:
    job_id, host, task = await a_job_of_the_history(server)
    before = await server.store.views.job(job_id)
    host.end(task, STATE_UPLOADED)

    reply = await host.call()

    assert reply.acks == (task.result.name,)
    assert host.finished == {}
    assert await server.store.views.job(job_id) == before


async def test_host_drops_a_moved_job(server: LiveServer) -> None:
    _, host, task = await a_job_of_the_history(server)

    reply = await host.call(other_results=(HeldResult(task.result.name),))

    assert reply.aborts == (task.result.name,)


async def test_repeated_upload_of_a_moved_job_succeeds(server: LiveServer) -> None:
    _, host, task = await a_job_of_the_history(server)

    assert (await host.upload(task)).status == 0
    assert (await host.size(task)).file_size == len(RIGHT)


async def test_purge_deletes_job_and_file_and_keeps_counts(server: LiveServer) -> None:
    job_id, host, task = await a_job_of_the_history(server)
    batch_id = (await server.store.views.job(job_id)).batch_id
    counters = await server.batch(batch_id)
    assert list(server.project.upload_dir.rglob("*_r0"))

    await purge_months(
        server.store.history,
        ProjectFiles(server.project.files_dir),
        await months_before(server.store.history, "9998-12"),
        clock=server.clock,
        progress=lambda month: None,
    )

    with pytest.raises(NotFoundError):
        await server.store.views.job(job_id)
    assert list(server.project.upload_dir.rglob("*_r0")) == []
    assert await server.batch(batch_id) == counters
    host.end(task, STATE_UPLOADED)
    assert (await host.call()).acks == (task.result.name,)
    assert (await host.upload(task)).status == -1
