"""Tests that jobs are settled oldest change first, against a serial, and end their batch."""

from __future__ import annotations

from domain.batches import BatchCounts, BatchState
from domain.dispatch import InstanceStep, Upload
from domain.havs import HavEventKind
from domain.jobs import InstanceState, JobState, ValidatorKind
from domain.settlement import ExtraCopy, InstanceFacts, JobSettlement, JobShare
from domain.units import InstanceId, JobId, later
from tests.builders import NOW, a_job_class
from tests.conformance.to_settle import SETTLED_AT, S, a_reported_job, valid
from tests.stores import Store
from tests.worlds import (
    a_hav_event,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
    waiting_of,
)


async def test_facts_say_everything_settling_needs(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    sent = await a_sent_instance(store, batch.batch_id, host, tight=True)
    [other] = [one.ready for one in await waiting_of(store, batch.batch_id)]
    await store.uploads.record_upload(sent.instance_id, name="out", nbytes=3, md5="a" * 32, completed_at=NOW)
    await report(store, host, a_report(sent, turnaround_sample=0.5))

    [facts] = await store.unsettled.unsettled(9, now=NOW)

    [job_class] = await store.views.classes_of_batch(batch.batch_id)
    assert (facts.job_id, facts.batch_id, facts.state) == (sent.job_id, batch.batch_id, JobState.OPEN)
    assert (facts.job_class, facts.copies, facts.canonical_instance_id) == (job_class, 0, None)
    assert (facts.batch_aborted, facts.app_name) == (False, "pi")
    prefix = f"pi_{batch.batch_id}_{sent.job_id}_"
    returned = InstanceFacts(
        sent.instance_id,
        f"{prefix}{sent.instance_id}",
        S.REPORTED,
        host.host_id,
        sent.app_version_id,
        sent.sent_at,
        sent.due_at,
        reported_at=later(NOW, 3600.0),
        est_runtime_s=sent.est_runtime_s,
        elapsed_s=a_report(sent).elapsed_s,
        tight=True,
        uploads=(Upload("out", 3, "a" * 32),),
        turnaround_sample=0.5,
        timeout_at=sent.timeout_at,
    )
    name = f"{prefix}{other.instance_id}"
    unsent = InstanceFacts(
        other.instance_id, name, S.UNSENT, None, None, None, None, None, None, None, tight=False, uploads=()
    )
    assert facts.instances == (returned, unsent)


async def test_unsettled_jobs_come_oldest_change_first(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(4)]
    for assignment in (sent[2], sent[0], sent[3]):
        await report(store, host, a_report(assignment))

    found = await store.unsettled.unsettled(9, now=NOW)

    assert [facts.job_id for facts in found] == [sent[2].job_id, sent[0].job_id, sent[3].job_id]
    assert [facts.job_id for facts in await store.unsettled.unsettled(2, now=NOW)] == [sent[2].job_id, sent[0].job_id]
    assert [facts.serial for facts in found] == sorted(facts.serial for facts in found)


async def test_shares_divide_the_unsettled_jobs(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=7)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(7)]
    for assignment in sent[::-1]:
        await report(store, host, a_report(assignment))

    for of in (1, 2, 3):
        shares = [await store.unsettled.unsettled(9, now=NOW, share=JobShare(part, of)) for part in range(of)]
        found = [[int(facts.job_id) for facts in share] for share in shares]
        assert all(one == sorted(one, reverse=True) for one in found)
        assert sorted(job_id for one in found for job_id in one) == [one.job_id for one in sent]
        assert [len(one) for one in found] == {1: [7], 2: [3, 4], 3: [2, 3, 2]}[of]
    [first] = await store.unsettled.unsettled(1, now=NOW, share=JobShare(0, 2))
    assert first.job_id == 6


async def test_jobs_whose_outputs_are_read_can_be_left_out(store: Store) -> None:
    host = await a_registered_host(store)
    by_content = a_job_class(validator=ValidatorKind.TOLERANCE, tolerance=1e-3)
    batches = [await a_submitted_batch(store, jobs=1, job_class=one) for one in (by_content, a_job_class())]
    sent = [await a_sent_instance(store, batch.batch_id, host) for batch in batches]
    for assignment in sent:
        await report(store, host, a_report(assignment))

    assert [one.job_id for one in await store.unsettled.unsettled(9, now=NOW)] == [one.job_id for one in sent]
    found = await store.unsettled.unsettled(1, now=NOW, with_content=False)
    assert [one.job_id for one in found] == [sent[1].job_id]


async def test_a_second_event_moves_a_job_to_the_end(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2, quorum=2)
    hosts = [await a_registered_host(store) for _ in range(2)]
    candidates = await waiting_of(store, batch.batch_id)
    first = [one for one in candidates if one.ready.job_id == candidates[0].ready.job_id]
    second = next(one for one in candidates if one.ready.job_id != candidates[0].ready.job_id)
    sent = [await a_sent_instance(store, batch.batch_id, host, one) for host, one in zip(hosts, first, strict=True)]
    other = await a_sent_instance(store, batch.batch_id, hosts[0], second)
    await report(store, hosts[0], a_report(sent[0]))
    await report(store, hosts[0], a_report(other))
    await report(store, hosts[1], a_report(sent[1]))

    found = await store.unsettled.unsettled(9, now=NOW)

    assert [facts.job_id for facts in found] == [other.job_id, sent[0].job_id]


async def test_valid_job_has_canonical_instance_and_settles_once(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host, quorum=2, jobs=2)

    assert await store.unsettled.settle([valid(facts)]) == 1

    job = await store.views.job(facts.job_id)
    assert (job.state, job.canonical_instance_id, job.failure) == (JobState.VALID, facts.instances[0].instance_id, "")
    assert [instance.state for instance in job.instances] == [S.VALID, S.CANCELLED]
    assert list(await store.unsettled.unsettled(9, now=NOW)) == []
    assert await store.unsettled.settle([valid(facts)]) == 0
    batch = await store.views.batch(facts.batch_id)
    assert batch.counts == BatchCounts(jobs_total=2, jobs_validated=1, unsent=2, sent=1, reported=1)
    assert batch.state is BatchState.ACTIVE


async def test_a_report_after_reading_makes_the_settlement_stale(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    hosts = [await a_registered_host(store) for _ in range(2)]
    sent = [await a_sent_instance(store, batch.batch_id, host) for host in hosts]
    await report(store, hosts[0], a_report(sent[0]))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await report(store, hosts[1], a_report(sent[1]))

    assert await store.unsettled.settle([valid(facts)]) == 0

    job = await store.views.job(facts.job_id)
    assert (job.state, {instance.state for instance in job.instances}) == (JobState.OPEN, {S.REPORTED})
    [again] = await store.unsettled.unsettled(9, now=NOW)
    assert again.serial > facts.serial
    assert await store.unsettled.settle([valid(again)]) == 1


async def test_a_copy_after_reading_makes_the_settlement_stale(store: Store) -> None:
    """Otherwise the job would end with an unsent instance. A comparison that is stale now does not delay the next."""
    facts = await a_reported_job(store, await a_registered_host(store))
    assert await store.unsettled.begin_comparisons([facts.job_id], now=NOW) == {facts.job_id: 1}
    copy = ExtraCopy(facts.job_id, len(facts.instances), 0, 1, because="late")
    assert await store.tails.add_copies([copy], now=NOW) == 1

    assert await store.unsettled.settle([valid(facts)]) == 0

    [again] = await store.unsettled.unsettled(9, now=NOW)
    assert again.serial > facts.serial
    assert await store.unsettled.settle([valid(again)]) == 1
    states = {instance.state for instance in (await store.views.job(facts.job_id)).instances}
    assert states == {S.VALID, S.CANCELLED}


async def test_abort_after_read_makes_settlement_stale(store: Store) -> None:
    facts = await a_reported_job(store, await a_registered_host(store), to_state=S.FAILED)
    await store.submissions.abort_batch(facts.batch_id, now=NOW)
    retry = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, new_instances=1, retries=1)

    assert await store.unsettled.settle([retry, valid(facts)]) == 0

    [again] = await store.unsettled.unsettled(9, now=NOW)
    assert (again.state, again.batch_aborted) == (JobState.CANCELLED, True)
    assert await waiting_of(store, facts.batch_id) == []


async def test_only_the_stale_ones_of_several_settlements_are_left_out(store: Store) -> None:
    host = await a_registered_host(store)
    one = await a_reported_job(store, host)
    two = await a_reported_job(store, host)
    await store.unsettled.settle([valid(one)])

    assert await store.unsettled.settle([valid(one), valid(two)]) == 1
    assert (await store.views.job(two.job_id)).state is JobState.VALID


async def test_new_instances_of_a_job_with_retries_are_urgent(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host, to_state=S.FAILED)

    settlement = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, new_instances=2, retries=1)
    assert await store.unsettled.settle([settlement]) == 1

    urgent = list(await store.waiting.urgent([facts.batch_id], 9))
    assert [one.ready.retries for one in urgent] == [1, 1]
    job = await store.views.job(facts.job_id)
    assert [(instance.state, instance.retries) for instance in job.instances] == [
        (S.FAILED, 0),
        (S.UNSENT, 1),
        (S.UNSENT, 1),
    ]
    counts = (await store.views.batch(facts.batch_id)).counts
    assert counts == BatchCounts(jobs_total=1, unsent=2, retries=1, sent=1, reported=1)


async def test_new_instances_are_fresh_while_no_sibling_returned(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store), copies=2)
    [facts] = await store.unsettled.unsettled(9, now=NOW)

    settlement = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, new_instances=1)
    assert await store.unsettled.settle([settlement]) == 1

    assert list(await store.waiting.urgent([facts.batch_id], 9)) == []
    assert len(list(await store.waiting.tail([facts.batch_id], 9))) == 1


async def test_new_instances_whose_sibling_is_back_are_urgent(store: Store) -> None:
    facts = await a_reported_job(store, await a_registered_host(store), to_state=S.REPORTED)

    settlement = JobSettlement(
        facts.job_id,
        facts.serial,
        JobState.OPEN,
        SETTLED_AT,
        steps=(InstanceStep(facts.instances[0].instance_id, S.REPORTED, S.INCONCLUSIVE),),
        new_instances=1,
        hasten=True,
    )
    assert await store.unsettled.settle([settlement]) == 1

    [candidate] = await store.waiting.urgent([facts.batch_id], 9)
    assert (candidate.ready.retries, candidate.ready.sibling_returned) == (0, True)


async def test_hastening_moves_fresh_instances_to_urgent(store: Store) -> None:
    facts = await a_reported_job(store, await a_registered_host(store), quorum=3, jobs=2)
    waiting = len(list(await store.waiting.tail([facts.batch_id], 99)))

    settlement = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, hasten=True)
    assert await store.unsettled.settle([settlement]) == 1

    urgent = list(await store.waiting.urgent([facts.batch_id], 9))
    assert [one.ready.instance_id for one in urgent] == [one.instance_id for one in facts.instances[1:]]
    assert len(list(await store.waiting.tail([facts.batch_id], 99))) == waiting - 2
    assert (await store.views.batch(facts.batch_id)).counts.unsent == waiting


async def test_hastening_leaves_other_jobs_and_sent_instances_alone(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host, quorum=2, jobs=1)
    other = await a_registered_host(store)
    await a_sent_instance(store, facts.batch_id, other)

    settlement = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, hasten=True)
    assert await store.unsettled.settle([settlement]) == 1

    assert await waiting_of(store, facts.batch_id) == []
    assert len((await read(store, other)).held) == 1


async def test_step_of_changed_instance_is_skipped_with_event(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    facts = await a_reported_job(store, host, quorum=2)
    sent = await a_sent_instance(store, facts.batch_id, other)
    event = a_hav_event(sent, HavEventKind.ERROR)
    cancel = InstanceStep(sent.instance_id, S.UNSENT, S.CANCELLED, hav_event=event)
    unknown = InstanceStep(InstanceId(999), S.UNSENT, S.CANCELLED)

    settlement = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, SETTLED_AT, steps=(cancel, unknown))
    assert await store.unsettled.settle([settlement]) == 1

    [held] = (await read(store, other)).held
    assert held.instance_id == sent.instance_id
    assert (await read(store, other)).havs[sent.app_version_id].n_error == 0


async def test_steps_bring_their_samples_and_events(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    event = a_hav_event(sent, HavEventKind.VALID, ln_turnaround_ratio=0.75, ln_turnaround=8.0, speed_s_per_flop=1e-9)
    step = InstanceStep(sent.instance_id, S.REPORTED, S.VALID, turnaround_sample=0.75, hav_event=event)

    settlement = JobSettlement(
        facts.job_id, facts.serial, JobState.VALID, SETTLED_AT, canonical_instance_id=sent.instance_id, steps=(step,)
    )
    await store.unsettled.settle([settlement])

    view = await read(store, host, sent.instance_id)
    row = view.havs[sent.app_version_id]
    assert (row.n_valid, row.consecutive_valid, row.quota_per_day) == (1, 1, 100)
    assert (row.relaxed.n, row.relaxed.total, row.speed.n) == (1.0, 0.75, 1.0)
    assert view.reported[sent.instance_id].turnaround_sample == 0.75


async def test_an_attempt_to_compare_is_counted_before_it_is_made(store: Store) -> None:
    """During the attempt, and longer after each failed one, no process takes the job, until it changes."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))

    async def found(after_s: float) -> int:
        return len(await store.unsettled.unsettled(9, now=later(NOW, after_s)))

    async def begin(at_s: float) -> int:
        return (await store.unsettled.begin_comparisons([sent.job_id], now=later(NOW, at_s)))[sent.job_id]

    assert await found(0.0) == 1
    assert await begin(0.0) == 1
    assert [await found(after_s) for after_s in (0.0, 59.0, 60.0)] == [0, 0, 1]
    assert await store.unsettled.begin_comparisons([sent.job_id], now=later(NOW, 59.0)) == {}
    assert await begin(60.0) == 2
    assert [await found(60.0 + after_s) for after_s in (60.0, 239.0, 240.0)] == [0, 0, 1]
    assert await store.unsettled.begin_comparisons([JobId(999)], now=NOW) == {}

    [facts] = await store.unsettled.unsettled(9, now=later(NOW, 300.0))
    step = InstanceStep(sent.instance_id, InstanceState.REPORTED, InstanceState.INVALID, reason="out is empty")
    assert await store.unsettled.settle([JobSettlement(sent.job_id, facts.serial, JobState.OPEN, NOW, steps=(step,))])
    [instance] = (await store.views.job(sent.job_id)).instances
    assert (instance.state, instance.reason) == (InstanceState.INVALID, "out is empty")
    assert await store.unsettled.begin_comparisons([sent.job_id], now=NOW) == {}
