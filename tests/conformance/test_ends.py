"""Tests that jobs end, the last one ends its batch, and later reports change neither."""

from __future__ import annotations

from domain.batches import BatchState
from domain.dispatch import InstanceStep
from domain.jobs import JobState
from domain.settlement import JobSettlement
from domain.units import later
from tests.builders import NOW
from tests.conformance.to_settle import SETTLED_AT, S, a_reported_job, failed, valid
from tests.stores import Store
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, read, report


async def test_the_batch_is_complete_when_its_last_open_job_ends(store: Store) -> None:
    host = await a_registered_host(store)
    one = await a_reported_job(store, host, jobs=2)
    await store.unsettled.settle([valid(one)])
    assert (await store.views.batch(one.batch_id)).state is BatchState.ACTIVE
    sent = await a_sent_instance(store, one.batch_id, host)
    await report(store, host, a_report(sent, to_state=S.FAILED))
    [two] = await store.unsettled.unsettled(9, now=NOW)

    await store.unsettled.settle([failed(two, "3 errors")])

    batch = await store.views.batch(one.batch_id)
    assert (batch.state, batch.ended_at) == (BatchState.COMPLETE, SETTLED_AT)
    assert (batch.counts.jobs_validated, batch.counts.jobs_failed, batch.counts.jobs_open) == (1, 1, 0)
    job = await store.views.job(two.job_id)
    assert (job.state, job.failure, job.canonical_instance_id) == (JobState.FAILED, "3 errors", None)


async def test_two_last_jobs_settled_together_complete_their_batch(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    for _ in range(2):
        await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host)))

    assert await store.unsettled.settle([valid(facts) for facts in await store.unsettled.unsettled(9, now=NOW)]) == 2

    assert (await store.views.batch(batch.batch_id)).state is BatchState.COMPLETE


async def test_what_comes_after_a_jobs_end_changes_its_instances_only(store: Store) -> None:
    hosts = [await a_registered_host(store) for _ in range(2)]
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    sent = [await a_sent_instance(store, batch.batch_id, host) for host in hosts]
    await report(store, hosts[0], a_report(sent[0], to_state=S.FAILED))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([failed(facts, "gave up")])
    assert [held.no_longer_needed for held in (await read(store, hosts[1])).held] == [True]
    before = await store.views.batch(batch.batch_id)

    await report(store, hosts[1], a_report(sent[1]))
    [late] = await store.unsettled.unsettled(9, now=NOW)
    assert late.state is JobState.FAILED
    settlement = JobSettlement(
        late.job_id,
        late.serial,
        JobState.FAILED,
        later(SETTLED_AT, 50.0),
        steps=(InstanceStep(sent[1].instance_id, S.REPORTED, S.TOO_LATE),),
    )
    assert await store.unsettled.settle([settlement]) == 1

    job = await store.views.job(late.job_id)
    assert (job.state, job.failure) == (JobState.FAILED, "gave up")
    assert [instance.state for instance in job.instances] == [S.FAILED, S.TOO_LATE]
    after = await store.views.batch(batch.batch_id)
    assert (after.state, after.ended_at, after.counts.jobs_failed) == (before.state, before.ended_at, 1)
    assert (after.counts.retries, after.counts.in_progress) == (2, 0)


async def test_late_result_is_judged_without_changing_valid_job(store: Store) -> None:
    hosts = [await a_registered_host(store) for _ in range(2)]
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    sent = [await a_sent_instance(store, batch.batch_id, host) for host in hosts]
    await report(store, hosts[0], a_report(sent[0]))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([valid(facts)])
    await report(store, hosts[1], a_report(sent[1]))
    [late] = await store.unsettled.unsettled(9, now=NOW)

    settlement = JobSettlement(
        late.job_id,
        late.serial,
        JobState.VALID,
        later(SETTLED_AT, 50.0),
        canonical_instance_id=sent[0].instance_id,
        steps=(InstanceStep(sent[1].instance_id, S.REPORTED, S.VALID),),
    )
    assert await store.unsettled.settle([settlement]) == 1

    job = await store.views.job(late.job_id)
    assert (job.state, job.canonical_instance_id) == (JobState.VALID, sent[0].instance_id)
    assert (await store.views.batch(batch.batch_id)).ended_at == SETTLED_AT
