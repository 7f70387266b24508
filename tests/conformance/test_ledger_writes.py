"""Tests the outcomes of a request's assignments: sent, lost, or sibling."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from domain.batches import BatchCounts
from domain.dispatch import AssignmentFate, RequestWrites, SentJob, WriteOutcome
from domain.due_terms import DueRow
from domain.jobs import Candidate, Input, InstanceState, JobState
from domain.ranking import Gate
from domain.settlement import JobSettlement
from domain.submission import NewJob
from domain.units import InstanceId, later
from tests.builders import NOW, a_job_class, some_due_terms
from tests.stores import Store
from tests.worlds import (
    a_new_batch,
    a_registered_app,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    read,
    report,
    send,
    the_version,
    waiting_of,
)

SENT, LOST, SIBLING = AssignmentFate.SENT, AssignmentFate.LOST, AssignmentFate.SIBLING


async def test_an_empty_write_commits_nothing_but_the_host(store: Store) -> None:
    host = await a_registered_host(store)

    assert await store.ledger.write(RequestWrites(host.host)) == WriteOutcome()


async def test_earlier_description_does_not_replace_later_one(store: Store) -> None:
    """Two requests of a host, the second a retry of the first in progress, may be written out of order."""
    host = await a_registered_host(store, last_rpc_at=NOW)
    earlier = replace(host.host, rpc_seqno=7, last_rpc_at=later(NOW, 60.0), ncpus=2)
    after = replace(host.host, rpc_seqno=8, last_rpc_at=later(NOW, 120.0), ncpus=16)

    await store.ledger.write(RequestWrites(after))
    await store.ledger.write(RequestWrites(earlier))

    found = (await read(store, host)).host
    assert found is not None
    assert (found.rpc_seqno, found.last_rpc_at, found.ncpus) == (8, later(NOW, 120.0), 16)


async def test_later_of_two_requests_in_a_group_is_written(store: Store) -> None:
    host = await a_registered_host(store, last_rpc_at=NOW)
    said = [replace(host.host, rpc_seqno=seqno, last_rpc_at=later(NOW, 60.0 * seqno)) for seqno in (8, 7)]

    await asyncio.gather(*(store.ledger.write(RequestWrites(one)) for one in said))

    found = (await read(store, host)).host
    assert found is not None
    assert found.rpc_seqno == 8


async def test_call_with_wrong_clock_does_not_block_later_calls(store: Store) -> None:
    """A request older than the last one by a minute or more was not merely overtaken."""
    host = await a_registered_host(store, last_rpc_at=NOW)
    ahead = replace(host.host, rpc_seqno=7, last_rpc_at=later(NOW, 86400.0 * 365))
    now = replace(host.host, rpc_seqno=8, last_rpc_at=later(NOW, 60.0), ncpus=16)

    await store.ledger.write(RequestWrites(ahead))
    await store.ledger.write(RequestWrites(now))

    found = (await read(store, host)).host
    assert found is not None
    assert (found.rpc_seqno, found.last_rpc_at, found.ncpus) == (8, later(NOW, 60.0), 16)


async def test_last_request_in_group_is_written_after_wrong_clock(store: Store) -> None:
    host = await a_registered_host(store, last_rpc_at=NOW)
    said = [
        replace(host.host, rpc_seqno=seqno, last_rpc_at=later(NOW, at_s))
        for seqno, at_s in ((7, 86400.0 * 365), (8, 60.0))
    ]

    await asyncio.gather(*(store.ledger.write(RequestWrites(one)) for one in said))

    found = (await read(store, host)).host
    assert found is not None
    assert (found.rpc_seqno, found.last_rpc_at) == (8, later(NOW, 60.0))


async def test_a_sent_assignment_is_written_whole(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    [candidate] = await waiting_of(store, batch.batch_id)
    terms = some_due_terms(row=DueRow.PROMPT_2, numbers=(0.1 + 0.2, 0.25, 1e-3, 2e9), p=None, gate=Gate.AFAP)
    assignment = an_assignment(candidate, host, await the_version(store), tight=True, due_terms=terms)

    outcome = await send(store, host, assignment)

    sent = SentJob(assignment.instance_id, "--job 0", None)
    assert outcome == WriteOutcome({assignment.instance_id: SENT}, {assignment.instance_id: sent})
    [row] = (await store.views.job(assignment.job_id)).instances
    assert (row.state, row.host_id, row.app_version_id) == (
        InstanceState.IN_PROGRESS,
        host.host_id,
        assignment.app_version_id,
    )
    assert (row.sent_at, row.due_at, row.est_runtime_s) == (NOW, NOW + 86400.0, 3600.0)
    assert (row.tight, row.due_terms) == (True, terms)
    after = await store.views.batch(batch.batch_id)
    assert after.counts == BatchCounts(jobs_total=1, in_progress=1, sent=1)


async def test_a_sent_job_brings_its_own_inputs(store: Store) -> None:
    host, app = await a_registered_host(store), await a_registered_app(store)
    own = (Input("in_7", "in", 12, "a" * 32), Input("params_7", "params", 1, "b" * 32, sticky=True))
    async with store.submissions.submission() as writer:
        batch_id = await writer.add_batch(a_new_batch(app_id=app.app_id, jobs_total=1))
        [class_id] = await writer.add_classes(batch_id, [a_job_class()])
        await writer.add_jobs(batch_id, [NewJob(class_id, "--n 7", own)])
    [candidate] = await waiting_of(store, batch_id)

    outcome = await send(store, host, an_assignment(candidate, host, await the_version(store)))

    expected = {candidate.ready.instance_id: SentJob(candidate.ready.instance_id, "--n 7", own)}
    assert outcome.sent == expected
    assert await store.ledger.sent_jobs([candidate.ready.instance_id, InstanceId(999)]) == expected
    [listed] = await store.views.jobs(batch_id, limit=9)
    assert (listed.inputs, listed.instances) == (own, ())


async def test_instance_of_another_host_is_lost(store: Store) -> None:
    first, second = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    await send(store, first, an_assignment(one, first, version))

    outcome = await send(store, second, an_assignment(one, second, version), an_assignment(two, second, version))

    assert outcome.fates == {one.ready.instance_id: LOST, two.ready.instance_id: SENT}
    assert set(outcome.sent) == {two.ready.instance_id}
    assert [held.instance_id for held in (await read(store, first)).held] == [one.ready.instance_id]
    assert [held.instance_id for held in (await read(store, second)).held] == [two.ready.instance_id]


async def test_a_cancelled_and_an_unknown_instance_are_lost(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    [candidate] = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    unknown = Candidate(replace(candidate.ready, instance_id=InstanceId(999)))

    outcome = await send(store, host, an_assignment(candidate, host, version), an_assignment(unknown, host, version))

    assert outcome == WriteOutcome({candidate.ready.instance_id: LOST, InstanceId(999): LOST})


async def test_a_host_gets_one_instance_of_a_job_in_all(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    sent = an_assignment(one, host, version)
    await send(store, host, sent)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))

    outcome = await send(store, host, an_assignment(two, host, version))

    assert outcome == WriteOutcome({two.ready.instance_id: SIBLING})
    assert [candidate.ready.instance_id for candidate in await waiting_of(store, batch.batch_id)] == [
        two.ready.instance_id
    ]


async def test_a_volunteer_gets_one_instance_of_a_job_over_all_hosts(store: Store) -> None:
    first = await a_registered_host(store)
    second = await a_registered_host(store, volunteer_id=first.volunteer_id)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    await send(store, first, an_assignment(one, first, version))

    outcome = await send(store, second, an_assignment(two, second, version))

    assert outcome.fates == {two.ready.instance_id: SIBLING}


async def test_second_instance_of_job_in_one_write_is_sibling(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2, quorum=2)
    version = await the_version(store)
    assignments = [an_assignment(candidate, host, version) for candidate in await waiting_of(store, batch.batch_id)]

    outcome = await send(store, host, *assignments)

    by_job: dict[int, list[AssignmentFate]] = {}
    for assignment in assignments:
        by_job.setdefault(assignment.job_id, []).append(outcome.fates[assignment.instance_id])
    assert [sorted(fates) for fates in by_job.values()] == [[SENT, SIBLING], [SENT, SIBLING]]
    assert len((await read(store, host)).held) == 2


async def test_other_volunteers_get_the_other_instances_of_a_job(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=3)
    for _ in range(3):
        await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    assert (await store.views.batch(batch.batch_id)).counts == BatchCounts(jobs_total=1, in_progress=3, sent=3)


async def test_concurrent_writes_for_the_same_instances_send_each_once(store: Store) -> None:
    hosts = [await a_registered_host(store) for _ in range(6)]
    batch = await a_submitted_batch(store, jobs=4)
    candidates = await waiting_of(store, batch.batch_id)
    version = await the_version(store)

    outcomes = await asyncio.gather(
        *(send(store, host, *(an_assignment(one, host, version) for one in candidates)) for host in hosts)
    )

    sent = [instance_id for outcome in outcomes for instance_id in outcome.sent]
    assert sorted(sent) == sorted(candidate.ready.instance_id for candidate in candidates)


async def test_first_dispatch_of_job_updates_batchs_latest(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2, quorum=2)
    by_job: dict[int, list[Candidate]] = {}
    for candidate in await waiting_of(store, batch.batch_id):
        by_job.setdefault(candidate.ready.job_id, []).append(candidate)
    (first, replica), (second, _) = by_job.values()

    for candidate, sent_at, latest_at in ((first, 10.0, 10.0), (replica, 30.0, 10.0), (second, 20.0, 20.0)):
        host = await a_registered_host(store)
        await a_sent_instance(store, batch.batch_id, host, candidate, sent_at=later(NOW, sent_at))
        assert (await store.views.batch(batch.batch_id)).last_first_dispatch_at == NOW + latest_at


async def test_the_first_dispatch_fixes_the_jobs_redundancy_class(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=3, job_class=a_job_class(quorum=3, hr_type=1))
    first, second, third = [await a_registered_host(store) for _ in range(3)]
    version = await the_version(store)
    await a_sent_instance(store, batch.batch_id, first, hr_class=2)
    one, two = await waiting_of(store, batch.batch_id)
    assert (one.ready.hr_class, two.ready.hr_class) == (2, 2)

    refused = await send(store, second, an_assignment(one, second, version, hr_class=3))
    taken = await send(store, third, an_assignment(two, third, version, hr_class=2))

    assert refused.fates == {one.ready.instance_id: LOST}
    assert taken.fates == {two.ready.instance_id: SENT}


async def test_dispatch_with_more_copies_marks_its_job(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)

    sent = await a_sent_instance(store, batch.batch_id, host, copies=2)

    [facts] = await store.unsettled.unsettled(9, now=NOW)
    assert (facts.job_id, facts.copies) == (sent.job_id, 2)


async def test_dispatch_without_copies_does_not_change_job(store: Store) -> None:
    await a_sent_instance(store, (await a_submitted_batch(store)).batch_id, await a_registered_host(store))

    assert list(await store.unsettled.unsettled(9, now=NOW)) == []


async def test_an_instance_whose_job_is_over_is_lost(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2, quorum=2)
    sent = await a_sent_instance(store, batch.batch_id, host)
    [sibling] = [one for one in await waiting_of(store, batch.batch_id) if one.ready.job_id == sent.job_id]
    await report(store, host, a_report(sent))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    over = JobSettlement(facts.job_id, facts.serial, JobState.VALID, NOW, canonical_instance_id=sent.instance_id)
    await store.unsettled.settle([over])

    outcome = await send(store, other, an_assignment(sibling, other, await the_version(store)))

    assert outcome.fates == {sibling.ready.instance_id: LOST}
