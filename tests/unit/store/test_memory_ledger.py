"""Tests what the memory store refuses where a database has a constraint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.dispatch import RequestWrites
from domain.errors import InvalidInputError, NotFoundError
from domain.units import BatchId, HostId, VolunteerId, later
from tests.builders import NOW, a_host, a_job_class
from tests.facts import states
from tests.memory import AllShards, MemoryStore
from tests.worlds import a_registered_host, a_submitted_batch, an_assignment, send, the_version, waiting_of


async def test_host_needs_an_existing_volunteer() -> None:
    with pytest.raises(NotFoundError, match="no volunteer 99"):
        await MemoryStore().ledger.create_host(VolunteerId(99), a_host())


async def test_a_write_for_an_unknown_host_is_an_error() -> None:
    with pytest.raises(NotFoundError, match="no host 99"):
        await MemoryStore().ledger.write(RequestWrites(a_host(host_id=HostId(99))))


async def test_due_date_before_dispatch_writes_nothing() -> None:
    store = MemoryStore()
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    version = await the_version(store)
    good, bad = [an_assignment(one, host, version) for one in await waiting_of(store, batch.batch_id)]

    with pytest.raises(InvalidInputError, match="sent_at < due_at <= timeout_at"):
        await send(store, host, good, replace(bad, due_at=later(NOW, -1.0)))

    assert (await store.views.batch(batch.batch_id)).counts.unsent == 2


async def test_a_class_of_another_submissions_batch_is_an_error() -> None:
    store = MemoryStore()

    with states(NotFoundError, "this submission 7"):
        async with store.submissions.submission() as writer:
            await writer.add_classes(BatchId(7), [a_job_class()])


async def test_the_one_worker_owns_every_shard() -> None:
    assert AllShards().owned() == frozenset(range(64))
