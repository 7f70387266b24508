"""Tests that reports end instances under their guard, and that detaching ends a host's instances."""

from __future__ import annotations

from dataclasses import replace

from domain.batches import BatchCounts
from domain.dispatch import AssignmentFate, RequestWrites
from domain.havs import HavEvent, HavEventKind
from domain.jobs import InstanceState
from domain.units import InstanceId, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    read,
    report,
    the_version,
    waiting_of,
)

SENT = AssignmentFate.SENT


async def test_a_report_is_written_whole_and_its_standard_error_kept(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)

    await report(
        store,
        host,
        a_report(sent, to_state=InstanceState.FAILED, exit_status=3, reason="it broke", stderr="oh <no> & \t é\n"),
    )

    [row] = (await store.views.job(sent.job_id)).instances
    assert (row.state, row.reported_at, row.elapsed_s) == (InstanceState.FAILED, NOW + 3600.0, 3000.0)
    assert (row.exit_status, row.reason, row.stderr) == (3, "it broke", "oh <no> & \t é\n")
    counts = (await store.views.batch(batch.batch_id)).counts
    assert counts == BatchCounts(jobs_total=1, retries=1, sent=1, reported=1)
    assert (await read(store, host)).held == ()


async def test_a_report_after_due_at_misses_the_deadline(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    for reported_at in (86400.0, 86401.0):
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent, reported_at=later(NOW, reported_at)))

    assert (await store.views.batch(batch.batch_id)).counts.deadlines_missed == 1


async def test_second_report_is_ignored(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    before = await store.views.job(sent.job_id)

    await report(store, host, a_report(sent, to_state=InstanceState.FAILED, reason="again"))

    assert await store.views.job(sent.job_id) == before


async def test_a_report_on_another_hosts_instance_is_left_out(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)

    await report(store, other, a_report(sent, host_id=other.host_id))

    [row] = (await store.views.job(sent.job_id)).instances
    assert row.state is InstanceState.IN_PROGRESS
    assert list(await store.unsettled.unsettled(9, now=NOW)) == []


async def test_ignored_reports_are_returned(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    first, second = [await a_sent_instance(store, batch.batch_id, host) for _ in range(2)]
    await report(store, host, a_report(first))

    both = RequestWrites(host.host, reports=(a_report(first), a_report(second)))
    assert (await store.ledger.write(both)).left_out == {first.instance_id}
    theirs = RequestWrites(other.host, reports=(a_report(second),))
    assert (await store.ledger.write(theirs)).left_out == {second.instance_id}


async def test_a_report_that_lost_its_race_does_not_hinder_the_rest(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    one = await a_sent_instance(store, batch.batch_id, host)
    two = await a_sent_instance(store, batch.batch_id, host)
    [candidate] = await waiting_of(store, batch.batch_id)
    await report(store, host, a_report(one))

    outcome = await store.ledger.write(
        RequestWrites(
            replace(host.host, rpc_seqno=77),
            reports=(a_report(one), a_report(two), a_report(one, instance_id=InstanceId(999))),
            assignments=(an_assignment(candidate, host, await the_version(store)),),
        )
    )

    assert outcome.fates == {candidate.ready.instance_id: SENT}
    view = await read(store, host, two.instance_id)
    assert view.host is not None
    assert view.host.rpc_seqno == 77
    assert view.reported[two.instance_id].state is InstanceState.REPORTED
    assert [held.instance_id for held in view.held] == [candidate.ready.instance_id]


# ---------------------------------------------------------------- detaching


async def test_detaching_aborts_instances_and_marks_jobs(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    lost = [await a_sent_instance(store, batch.batch_id, host) for _ in range(2)]
    kept = await a_sent_instance(store, batch.batch_id, other)

    await store.ledger.write(RequestWrites(host.host, detach=True))

    assert (await read(store, host)).held == ()
    assert [held.instance_id for held in (await read(store, other)).held] == [kept.instance_id]
    for assignment in lost:
        [row] = (await store.views.job(assignment.job_id)).instances
        assert (row.state, row.host_id, row.reported_at) == (InstanceState.ABORTED, host.host_id, None)
    facts = await store.unsettled.unsettled(9, now=NOW)
    assert {one.job_id for one in facts} == {assignment.job_id for assignment in lost}
    counts = (await store.views.batch(batch.batch_id)).counts
    assert counts == BatchCounts(jobs_total=4, unsent=1, in_progress=1, retries=2, sent=3)


async def test_what_a_detached_host_lost_costs_it_quota_and_no_more(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    valid = await a_sent_instance(store, batch.batch_id, host)
    event = HavEvent(host.host_id, valid.app_version_id, HavEventKind.VALID, NOW)
    await store.ledger.write(RequestWrites(host.host, (a_report(valid, hav_event=event),)))
    lost = [await a_sent_instance(store, batch.batch_id, host) for _ in range(3)]

    await store.ledger.write(RequestWrites(host.host, detach=True))

    [hav] = (await read(store, host)).havs.values()
    assert lost[0].app_version_id == hav.app_version_id
    assert (hav.quota_per_day, hav.consecutive_valid) == (2 * 50 - 3, 1)
    assert (hav.n_error, hav.n_timeout, hav.clean_since_at) == (0, 0, NOW)


async def test_a_host_that_only_lost_jobs_has_no_failure(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    await a_sent_instance(store, batch.batch_id, host)

    await store.ledger.write(RequestWrites(host.host, detach=True))

    [hav] = (await read(store, host)).havs.values()
    assert (hav.quota_per_day, hav.failed_last, hav.clean_since_at) == (49, False, None)


async def test_report_and_work_of_request_survive_detaching(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    done = await a_sent_instance(store, batch.batch_id, host)
    lost = await a_sent_instance(store, batch.batch_id, host)
    [candidate] = await waiting_of(store, batch.batch_id)

    await store.ledger.write(
        RequestWrites(
            host.host,
            reports=(a_report(done),),
            assignments=(an_assignment(candidate, host, await the_version(store)),),
            detach=True,
        )
    )

    view = await read(store, host, done.instance_id, lost.instance_id)
    assert view.reported[done.instance_id].state is InstanceState.REPORTED
    assert view.reported[lost.instance_id].state is InstanceState.ABORTED
    assert [held.instance_id for held in view.held] == [candidate.ready.instance_id]


async def test_a_success_after_a_detach_is_still_welcome(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await store.ledger.write(RequestWrites(host.host, detach=True))

    await report(store, host, a_report(sent, from_state=InstanceState.ABORTED))

    counts = (await store.views.batch(batch.batch_id)).counts
    assert counts == BatchCounts(jobs_total=1, sent=1, reported=1)


async def test_a_success_after_a_reported_abort_counts_one_report(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, to_state=InstanceState.ABORTED))

    first = (await read(store, host, sent.instance_id)).reported[sent.instance_id].reported_at
    again = a_report(sent, from_state=InstanceState.ABORTED, reported_before_at=first, reported_at=later(NOW, 7200.0))
    await report(store, host, again)

    counts = (await store.views.batch(batch.batch_id)).counts
    assert first == NOW + 3600.0
    assert counts == BatchCounts(jobs_total=1, sent=1, reported=1)


async def test_only_report_with_sample_replaces_turnaround_sample(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, to_state=InstanceState.ABORTED, turnaround_sample=1.5))
    await report(store, host, a_report(sent, from_state=InstanceState.ABORTED, reported_before_at=later(NOW, 3600.0)))
    assert (await read(store, host, sent.instance_id)).reported[sent.instance_id].turnaround_sample == 1.5
