"""Tests that a repeated submission is recognised by its key while keys are kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from domain.errors import AlreadyExistsError, MusterError
from domain.submission import NewJob, SubmissionKey, SubmittedBefore
from domain.units import BatchId, Seconds, later
from tests.builders import NOW, a_job_class
from tests.stores import Store, batches_of
from tests.worlds import a_new_batch, a_registered_app

KEY = SubmissionKey("ada", "run 1", b"s" * 32, kept_s=Seconds(100.0))


async def submit(store: Store, key: SubmissionKey = KEY, at_s: float = 0.0, *, break_off: bool = False) -> BatchId:
    """One job, with a key."""
    app_id = (await store.applications.app("pi")).app_id
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(a_new_batch(app_id=app_id, jobs_total=1))
        await writer.remember(key, batch_id, now=later(NOW, at_s))
        [class_id] = await writer.add_classes(batch_id, [a_job_class()])
        await writer.add_jobs(batch_id, [NewJob(class_id)])
        if break_off:
            raise MusterError("broken off")
    return batch_id


async def test_a_key_and_its_batch_are_written_together_or_not_at_all(store: Store) -> None:
    await a_registered_app(store)
    with pytest.raises(MusterError, match="broken off"):
        await submit(store, break_off=True)
    assert await store.submissions.submitted_before(KEY, now=NOW) is None

    batch_id = await submit(store)

    assert await store.submissions.submitted_before(KEY, now=NOW) == SubmittedBefore(KEY.said, batch_id, None)
    await store.submissions.note_answer(KEY, {"batch_id": batch_id, "forecast": {"q50_at": 5.0}})
    found = await store.submissions.submitted_before(replace(KEY, said=b"other" * 6), now=NOW)
    assert found == SubmittedBefore(KEY.said, batch_id, {"batch_id": batch_id, "forecast": {"q50_at": 5.0}})


async def test_key_is_used_once_and_is_per_owner(store: Store) -> None:
    await a_registered_app(store)
    await submit(store)

    with pytest.raises(AlreadyExistsError, match="submission 'run 1' already exists"):
        await submit(store)
    await submit(store, replace(KEY, owner="bob"))
    await submit(store, replace(KEY, key="run 2"))

    assert len(await batches_of(store, limit=10)) == 3


async def test_of_two_that_come_together_one_is_written(store: Store) -> None:
    await a_registered_app(store)

    done = await asyncio.gather(submit(store), submit(store), return_exceptions=True)

    assert sorted(isinstance(one, AlreadyExistsError) for one in done) == [False, True]
    assert len(await batches_of(store, limit=10)) == 1


async def test_keys_are_forgotten_when_their_time_is_over(store: Store) -> None:
    await a_registered_app(store)
    first = await submit(store)

    assert await store.submissions.submitted_before(KEY, now=later(NOW, 101)) is None
    second = await submit(store, at_s=101)

    found = await store.submissions.submitted_before(KEY, now=later(NOW, 101))
    assert found is not None
    assert found.batch_id == second != first
