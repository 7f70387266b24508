"""A copied batch has the same jobs, in order, with new classes and instances."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.errors import ConflictError
from domain.ordering_settings import OrderingSettings
from domain.units import BatchId
from jobs.copying import CopiedJobs, classes_to_copy
from jobs.spec import parse_batch
from jobs.submission import SubmissionPorts, checked, submit, write
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock, KnownFiles, a_project
from tests.worlds import a_registered_version

JOBS = {
    "jobs": {"fpops_est": 1e12, "quorum": 2},
    "job": [{"count": 2, "command_line": "--part {i}"}, {"fpops_est": 4e12, "inputs": [{"name": "in.txt"}]}],
}


async def copied(store: MemoryStore, batch_id: BatchId) -> BatchId:
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles())
    batch = await store.views.batch(batch_id)
    classes = await store.views.classes_of_batch(batch_id)
    spec = parse_batch(
        {"app": "pi", "qos": "throughput", "submitter": "ada", "name": "copy", "jobs": {"count": 1, "fpops_est": 1}}
    )
    jobs = await classes_to_copy(batch_id, batch.counts.jobs_total, classes, store.repeating)
    made = replace(
        await checked(replace(spec, jobs=jobs), ports=ports), copied=CopiedJobs(batch_id, classes, store.repeating)
    )
    return await write(made, submissions=store.submissions, ordering=OrderingSettings(), clock=HandClock())


async def a_submitted(store: MemoryStore) -> BatchId:
    await a_registered_version(store)
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles("in.txt"))
    spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", **JOBS})
    return await submit(spec, ports=ports, ordering=OrderingSettings(), clock=HandClock())


async def test_copy_has_the_same_jobs_and_new_instances() -> None:
    store = await a_project()
    first = await a_submitted(store)

    second = await copied(store, first)

    one, other = await store.views.jobs(first, limit=9), await store.views.jobs(second, limit=9)
    assert [(job.command_line, job.inputs) for job in one] == [(job.command_line, job.inputs) for job in other]
    sizes = [
        sorted((c.fpops_est_flop, c.quorum, c.inputs) for c in await store.views.classes_of_batch(id_))
        for id_ in (first, second)
    ]
    assert sizes[0] == sizes[1]
    batch = await store.views.batch(second)
    assert (batch.name, batch.qos.value, batch.counts.unsent, batch.counts.jobs_total) == ("copy", "throughput", 6, 3)
    whole = [(await store.views.batch(id_)).logical_end_at for id_ in (first, second)]
    assert whole[1] > whole[0]  # the copy is charged like any batch


async def test_copy_of_a_purged_batch_is_refused() -> None:
    store = await a_project()
    batch_id = await a_submitted(store)
    classes = await store.views.classes_of_batch(batch_id)
    with pytest.raises(ConflictError):
        await classes_to_copy(batch_id, 99, classes, store.repeating)
