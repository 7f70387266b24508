"""Tests that batches are written completely or not at all, charge logical time, and can be aborted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from domain.batches import BatchCounts, BatchState, QoS
from domain.errors import NotFoundError
from domain.jobs import Input, InstanceState, JobState
from domain.submission import JobTemplate, NewJob, SubmitterLimits
from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId, later
from tests.builders import NOW, a_job_class
from tests.stores import Store, batches_of
from tests.worlds import (
    DAY_S,
    a_new_batch,
    a_registered_app,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    waiting_of,
)

MINE = SubmitterId(1)  # the default submitter


async def standing_of(store: Store, submitter_id: SubmitterId, now: Instant = NOW) -> SubmitterLimits:
    async with store.submissions.submission() as writer:
        return await writer.standing(submitter_id, now=now)


async def test_submitted_batch_is_read_back_completely(store: Store) -> None:
    app = await a_registered_app(store)

    batch = await a_submitted_batch(
        store,
        jobs=3,
        quorum=2,
        name="digits",
        qos=QoS.SHORT_DEADLINE,
        deadline_at=later(NOW, 5 * DAY_S),
        user_priority=7,
    )

    assert (batch.submitter_id, batch.account_id, batch.app_id) == (MINE, AccountId(1), app.app_id)
    assert (batch.name, batch.qos, batch.state) == ("digits", QoS.SHORT_DEADLINE, BatchState.ACTIVE)
    assert (batch.created_at, batch.order_tier, batch.order_key) == (NOW, 0, NOW + 1000.0)
    assert (batch.logical_end_at, batch.deadline_at, batch.user_priority) == (NOW + 1000.0, NOW + 5 * DAY_S, 7)
    assert (batch.completion_at, batch.last_first_dispatch_at, batch.ended_at) == (None, None, None)
    assert batch.counts == BatchCounts(jobs_total=3, unsent=6)


async def test_limits_for_a_preview_do_not_wait_for_a_submission(store: Store) -> None:
    await a_registered_app(store)
    async with store.submissions.submission() as writer, store.submissions.submission() as preview:
        limits = await writer.standing(MINE, now=NOW)
        async with asyncio.timeout(10.0):
            assert await preview.standing(MINE, now=NOW, lock=False) == limits


async def test_job_classes_are_written_with_ids_of_their_own(store: Store) -> None:
    job_class = a_job_class(quorum=2, max_errors=5, inputs=(Input("in_1", "in", 12, "a" * 32, sticky=True),))

    batch = await a_submitted_batch(store, jobs=2, job_class=job_class, copies=2)

    [stored] = await store.views.classes_of_batch(batch.batch_id)
    assert replace(stored, job_class_id=job_class.job_class_id) == replace(job_class, batch_id=batch.batch_id)
    ids = {candidate.ready.job_class_id for candidate in await waiting_of(store, batch.batch_id)}
    assert ids == {stored.job_class_id}
    assert await store.waiting.job_classes([stored.job_class_id]) == {stored.job_class_id: stored}
    assert await store.ledger.job_classes([stored.job_class_id]) == {stored.job_class_id: stored}


async def test_a_batch_may_have_several_classes_and_parts(store: Store) -> None:
    app = await a_registered_app(store)
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id, jobs_total=3))
        small, large = await writer.add_classes(batch_id, [a_job_class(), a_job_class(memory_bytes=4e9)])
        await writer.add_jobs(batch_id, [NewJob(small, "a"), NewJob(large, "b")])
        await writer.add_jobs(batch_id, [NewJob(small, "c", (Input("in_c", "in", 1, "c" * 32),))])

    jobs = await store.views.jobs(batch_id, limit=10)
    assert [(job.command_line, job.job_class_id) for job in jobs] == [("a", small), ("b", large), ("c", small)]
    assert {job.state for job in jobs} == {JobState.OPEN}


async def test_jobs_with_a_template_have_its_text_with_their_number(store: Store) -> None:
    app = await a_registered_app(store)
    template = JobTemplate("--part {i} of {i}", (Input("in_c", "in", 1, "c" * 32),))
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id, jobs_total=3))
        [class_id] = await writer.add_classes(batch_id, [a_job_class()])
        await writer.add_jobs(batch_id, [NewJob(class_id, template=template, number=number) for number in range(2)])
        await writer.add_jobs(batch_id, [NewJob(class_id, template=template, number=2), NewJob(class_id, "own")])

    jobs = await store.views.jobs(batch_id, limit=10)
    assert [job.command_line for job in jobs] == ["--part 0 of 0", "--part 1 of 1", "--part 2 of 2", "own"]
    assert (await store.views.job(jobs[1].job_id)).command_line == "--part 1 of 1"
    instances = {one.ready.job_id: one.ready.instance_id for one in await waiting_of(store, batch_id)}
    sent = await store.ledger.sent_jobs([instances[job.job_id] for job in jobs])
    assert [(one.command_line, one.inputs) for _, one in sorted(sent.items())] == [
        ("--part 0 of 0", template.inputs),
        ("--part 1 of 1", template.inputs),
        ("--part 2 of 2", template.inputs),
        ("own", None),
    ]


async def test_a_submission_left_by_an_exception_writes_nothing(store: Store) -> None:
    app = await a_registered_app(store)

    with pytest.raises(RuntimeError, match="on second thought"):
        async with store.submissions.submission() as writer:
            batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id))
            [class_id] = await writer.add_classes(batch_id, [a_job_class()])
            await writer.add_jobs(batch_id, [NewJob(class_id)] * 10)
            raise RuntimeError("on second thought")

    assert list(await batches_of(store, limit=10)) == []
    assert list(await store.waiting.ready_batches(10)) == []
    assert (await standing_of(store, MINE)).logical_at == 0.0


async def test_a_submission_charges_the_submitter(store: Store) -> None:
    await a_submitted_batch(store, logical_start_at=later(NOW, 10.0), charged_s=Seconds(40.0))

    assert (await store.people.submitter("default")).logical_at == NOW + 50.0
    assert (await standing_of(store, MINE)).logical_at == NOW + 50.0


async def test_the_standing_of_an_unknown_submitter_is_an_error(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no submitter 99"):
        await standing_of(store, SubmitterId(99))


async def test_shares_are_divided_among_submitters_of_30_days(store: Store) -> None:
    other = await store.people.add_submitter("other", account="default", shares=3.0, now=NOW)
    idle = await store.people.add_submitter("idle", account="default", shares=16.0, now=NOW)
    await a_submitted_batch(store, submitter_id=other.submitter_id)

    assert (await standing_of(store, MINE)).share_fraction == 1.0 / 4.0
    assert (await standing_of(store, idle.submitter_id)).share_fraction == 16.0 / 19.0
    assert (await standing_of(store, MINE, later(NOW, 31 * DAY_S))).share_fraction == 1.0


async def test_a_submitter_without_shares_still_has_a_place(store: Store) -> None:
    await a_submitted_batch(store)
    other = await store.people.add_submitter("other", account="default", shares=0.0, now=NOW)

    assert 0.0 < (await standing_of(store, other.submitter_id)).share_fraction < 1e-6


async def test_the_pool_is_what_recent_hosts_compute_together(store: Store) -> None:
    assert (await standing_of(store, MINE)).pool_flop_per_s == 0.0
    await a_registered_host(store, ncpus=2, flop_per_s=1e9, on_fraction=0.5, active_fraction=0.5, last_rpc_at=NOW)
    await a_registered_host(store, ncpus=4, flop_per_s=2e9, last_rpc_at=NOW)
    await a_registered_host(store, last_rpc_at=later(NOW, -8 * DAY_S))

    assert (await standing_of(store, MINE)).pool_flop_per_s == 0.5e9 + 8e9


async def test_second_submission_waits_for_first_and_its_charge(store: Store) -> None:
    app = await a_registered_app(store)
    has_standing, may_go_on = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with store.submissions.submission() as writer:
            await writer.standing(MINE, now=NOW)
            has_standing.set()
            await may_go_on.wait()
            batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id, jobs_total=1))
            [class_id] = await writer.add_classes(batch_id, [a_job_class()])
            await writer.add_jobs(batch_id, [NewJob(class_id)])

    async def second() -> SubmitterLimits:
        await has_standing.wait()
        async with store.submissions.submission() as writer:
            asyncio.get_running_loop().call_soon(may_go_on.set)
            return await writer.standing(MINE, now=NOW)

    _, seen = await asyncio.gather(first(), second())

    assert seen.logical_at == NOW + 50.0


async def test_abort_cancels_open_jobs_and_unsent_instances_only(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    sent = await a_sent_instance(store, batch.batch_id, host)

    aborted = await store.submissions.abort_batch(batch.batch_id, now=later(NOW, 5.0))

    assert (aborted.state, aborted.ended_at) == (BatchState.ABORTED, NOW + 5.0)
    assert aborted.counts == BatchCounts(jobs_total=3, in_progress=1, sent=1)
    assert {job.state for job in await store.views.jobs(batch.batch_id, limit=9)} == {JobState.CANCELLED}
    [instance] = (await store.views.job(sent.job_id)).instances
    assert instance.state is InstanceState.IN_PROGRESS
    assert list(await store.waiting.ready_batches(9)) == []
    assert await waiting_of(store, batch.batch_id) == []
    view = await store.ledger.read(host.key())
    assert [held.no_longer_needed for held in view.held] == [True]


async def test_the_report_of_an_aborted_batchs_instance_is_looked_at(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await store.submissions.abort_batch(batch.batch_id, now=later(NOW, 5.0))

    await report(store, host, a_report(sent))

    [facts] = await store.unsettled.unsettled(9, now=NOW)
    assert (facts.state, facts.batch_aborted) == (JobState.CANCELLED, True)


async def test_aborting_twice_returns_the_batch_as_it_ended(store: Store) -> None:
    batch = await a_submitted_batch(store)
    first = await store.submissions.abort_batch(batch.batch_id, now=later(NOW, 5.0))

    assert await store.submissions.abort_batch(batch.batch_id, now=later(NOW, 50.0)) == first


async def test_aborting_an_unknown_batch_is_an_error(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no batch 99"):
        await store.submissions.abort_batch(BatchId(99), now=NOW)
