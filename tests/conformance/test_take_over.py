"""Tests that instances move between two records of one computer, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.dispatch import InstanceStep, RequestWrites, TakeOver
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, JobId, later
from lifecycle.states import Event, allows
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
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

S = InstanceState


async def two_records(store: Store) -> tuple[RegisteredHost, RegisteredHost]:
    """Return an old and a new record of one computer."""
    old = await a_registered_host(store)
    cpid = old.host.host_cpid
    return old, await a_registered_host(
        store, account_key=old.account_key, volunteer_id=old.volunteer_id, host_cpid=cpid
    )


async def take_over(store: Store, new: RegisteredHost, old: RegisteredHost, *ids: InstanceId) -> frozenset[InstanceId]:
    claims = tuple(TakeOver(one, old.host_id) for one in ids)
    return (await store.ledger.write(RequestWrites(new.host, take_over=claims))).moved


async def host_of(store: Store, instance_id: InstanceId, job_id: JobId) -> HostId | None:
    job = await store.views.job(job_id)
    return next(one.host_id for one in job.instances if one.instance_id == instance_id)


async def test_taken_over_instance_is_reported_by_its_new_host(store: Store) -> None:
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=2)
    sent, kept = [await a_sent_instance(store, batch.batch_id, old) for _ in range(2)]
    before = (await store.views.batch(batch.batch_id)).counts

    moved = await take_over(store, new, old, sent.instance_id)

    assert moved == {sent.instance_id}
    assert [one.instance_id for one in (await read(store, new)).held] == [sent.instance_id]
    assert [one.instance_id for one in (await read(store, old)).held] == [kept.instance_id]
    assert (await store.views.batch(batch.batch_id)).counts == before
    late = await store.ledger.write(RequestWrites(old.host, (a_report(sent),)))
    done = await store.ledger.write(RequestWrites(new.host, (a_report(sent, host_id=new.host_id),)))
    assert late.left_out == {sent.instance_id}
    assert done.left_out == frozenset()


async def test_taken_over_instances_count_in_the_quota(store: Store) -> None:
    """The new record has statistics from then on, in which the instance counts when it comes due."""
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=2)
    sent = [await a_sent_instance(store, batch.batch_id, old) for _ in range(2)]

    await take_over(store, new, old, *(one.instance_id for one in sent))
    await store.overdue.count_due(now=later(NOW, 1e7))

    [hav] = (await read(store, new)).havs.values()
    assert (hav.sent_today, hav.n_due) == (2, 2)


@pytest.mark.parametrize(("rpc_seqno", "moves"), [(0, True), (1, False)])
async def test_unused_records_alone_give_back(store: Store, rpc_seqno: int, moves: bool) -> None:
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, new)
    await store.ledger.write(RequestWrites(replace(new.host, rpc_seqno=rpc_seqno)))

    claim = TakeOver(sent.instance_id, new.host_id, unused_only=True)
    outcome = await store.ledger.write(RequestWrites(old.host, take_over=(claim,)))

    assert (outcome.moved == {sent.instance_id}) is moves


async def test_second_claim_finds_nothing(store: Store) -> None:
    old, new = await two_records(store)
    third = await a_registered_host(store, volunteer_id=old.volunteer_id, host_cpid=old.host.host_cpid)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)

    first = await take_over(store, new, old, sent.instance_id)
    second = await take_over(store, third, old, sent.instance_id)

    assert first == {sent.instance_id}
    assert second == frozenset()
    assert await host_of(store, sent.instance_id, sent.job_id) == new.host_id


@pytest.mark.parametrize("other", ["volunteer", "host_cpid", "domain_name"])
async def test_another_computer_takes_nothing_over(store: Store, other: str) -> None:
    old = await a_registered_host(store)
    changes: dict[str, Any] = {"volunteer_id": old.volunteer_id, "host_cpid": old.host.host_cpid}
    if other == "volunteer":
        del changes["volunteer_id"]
    else:
        changes[other] = "another"
    new = await a_registered_host(store, **changes)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)

    assert await take_over(store, new, old, sent.instance_id) == frozenset()
    assert await host_of(store, sent.instance_id, sent.job_id) == old.host_id


@pytest.mark.parametrize("state", [S.REPORTED, S.FAILED, S.ABORTED, S.TIMED_OUT])
async def test_instances_move_while_a_success_may_follow(store: Store, state: InstanceState) -> None:
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)
    if state is S.TIMED_OUT:
        step = InstanceStep(sent.instance_id, S.IN_PROGRESS, S.TIMED_OUT, turnaround_sample=2.5)
        await store.overdue.time_out([step], now=later(NOW, 1e6))
    else:
        await report(store, old, a_report(sent, to_state=state))

    moved = await take_over(store, new, old, sent.instance_id)

    assert (moved == {sent.instance_id}) is allows(state, Event.SUCCEEDED)
    if moved:  # the sample is in the old host's statistics: it must not be subtracted from the new host's
        assert (await read(store, new, sent.instance_id)).reported[sent.instance_id].turnaround_sample is None


async def test_host_that_had_the_job_takes_no_second_instance(store: Store) -> None:
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=1, copies=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    first = an_assignment(one, old, version)
    await send(store, old, first)
    await send(store, new, an_assignment(two, new, version))

    assert await take_over(store, new, old, first.instance_id) == frozenset()


@pytest.mark.parametrize("sibling_state", [S.IN_PROGRESS, S.REPORTED])
@pytest.mark.parametrize("from_state", [S.IN_PROGRESS, S.TIMED_OUT])
async def test_success_that_cannot_move_stays_with_its_record(
    store: Store, sibling_state: InstanceState, from_state: InstanceState
) -> None:
    """The new record has had the job: the result counts for the old one, in the same transaction."""
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=1, copies=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    first, second = an_assignment(one, old, version), an_assignment(two, new, version)
    for host, assignment in ((old, first), (new, second)):
        assert [fate.value for fate in (await send(store, host, assignment)).fates.values()] == ["sent"]
    if from_state is S.TIMED_OUT:
        step = InstanceStep(first.instance_id, S.IN_PROGRESS, S.TIMED_OUT, turnaround_sample=2.5)
        await store.overdue.time_out([step], now=later(NOW, 1e6))
    if sibling_state is S.REPORTED:
        await report(store, new, a_report(second))
    success = a_report(first, from_state=from_state, host_id=old.host_id)

    outcome = await store.ledger.write(
        RequestWrites(new.host, (success,), take_over=(TakeOver(first.instance_id, old.host_id),))
    )

    assert (outcome.moved, outcome.left_out) == (frozenset(), frozenset())
    job = await store.views.job(first.job_id)
    rows = {row.instance_id: (row.host_id, row.state) for row in job.instances}
    assert rows == {first.instance_id: (old.host_id, S.REPORTED), second.instance_id: (new.host_id, sibling_state)}


async def test_moved_instance_is_reported_in_the_same_request(store: Store) -> None:
    old, new = await two_records(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)
    success = a_report(sent, host_id=old.host_id)

    outcome = await store.ledger.write(
        RequestWrites(new.host, (success,), take_over=(TakeOver(sent.instance_id, old.host_id),))
    )

    assert outcome.moved == {sent.instance_id}
    assert outcome.left_out == frozenset()
    assert await host_of(store, sent.instance_id, sent.job_id) == new.host_id


async def test_report_of_what_a_third_record_took_is_left_out(store: Store) -> None:
    old, new = await two_records(store)
    third = await a_registered_host(store, volunteer_id=old.volunteer_id, host_cpid=old.host.host_cpid)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, old)
    await take_over(store, third, old, sent.instance_id)
    success = a_report(sent, host_id=old.host_id)

    outcome = await store.ledger.write(
        RequestWrites(new.host, (success,), take_over=(TakeOver(sent.instance_id, old.host_id),))
    )

    assert outcome.moved == frozenset()
    assert outcome.left_out == {sent.instance_id}
    assert await host_of(store, sent.instance_id, sent.job_id) == third.host_id


async def test_move_leaves_the_limit_per_volunteer(store: Store) -> None:
    """The volunteer has had the job, on any record."""
    old, new = await two_records(store)
    other = await a_registered_host(store, volunteer_id=old.volunteer_id)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    one, two = await waiting_of(store, batch.batch_id)
    version = await the_version(store)
    await send(store, old, an_assignment(one, old, version))
    await take_over(store, new, old, one.ready.instance_id)

    for host in (old, new, other):
        outcome = await send(store, host, an_assignment(two, host, version))
        assert [fate.value for fate in outcome.fates.values()] == ["sibling"]


async def test_instances_of_the_computer_are_read_on_request(store: Store) -> None:
    old, new = await two_records(store)
    stranger = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    sent, foreign = [await a_sent_instance(store, batch.batch_id, host) for host in (old, stranger)]
    key = new.key(sent.instance_id, foreign.instance_id)

    plain = await store.ledger.read(key)
    whole = await store.ledger.read(replace(key, of_computer=True))

    assert (list(plain.reported), list(whole.reported)) == ([], [sent.instance_id])
    assert whole.reported[sent.instance_id].held.host_id == old.host_id
