"""Tests nodes, validator and sweeper on the same batches at once: no deadlocks, and counters are right."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import count

import asyncpg

from domain.apps import AppVersion
from domain.batches import BatchCounts, BatchState
from domain.dispatch import AssignmentFate, InstanceStep, RequestWrites, WriteOutcome
from domain.havs import HavEventKind
from domain.jobs import Candidate, InstanceState, JobState
from domain.quotas import QuotaRequest
from domain.settings import SchedulerSettings
from domain.settlement import JobFacts, JobSettlement
from domain.units import BatchId, Instant
from store.counters import CountChanges
from store.ledger import write_many
from store.pool import DatabaseSession, connect
from store.postgres import PostgresStore, open_store
from tests.builders import NOW
from tests.database.blocking import until_blocked
from tests.worlds import (
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    the_version,
    waiting_of,
)

S = InstanceState
LATER = Instant(NOW + 1e6)
VOLUNTEERS, REQUESTS, AT_ONCE = 8, 12, 4
DAY = int(NOW // 86_400)


async def volunteers(
    store: PostgresStore, hosts: list[RegisteredHost], batch_ids: Sequence[BatchId], seed: int
) -> None:
    """Hosts of one node fetch waiting instances and report at once: a success, a failure, or nothing."""
    rng = random.Random(seed)
    version = await the_version(store)
    for _ in range(REQUESTS):
        host = rng.choice(hosts)
        draw = QuotaRequest(host.host.host_id, host.host.volunteer_id, DAY, AT_ONCE, 1, f"192.0.2.{rng.randrange(3)}")
        await store.ledger.reserve_quota(draw)
        waiting = await waiting_of(store, batch_ids[rng.randrange(len(batch_ids))])
        chosen = rng.sample(waiting, min(AT_ONCE, len(waiting)))
        assignments = tuple(an_assignment(one, host, version) for one in chosen)
        outcome = await store.ledger.write(RequestWrites(host.host, assignments=assignments))
        reports = []
        for assignment in assignments:
            if assignment.instance_id in outcome.sent and rng.random() < 0.8:
                failed = rng.random() < 0.3
                event = a_hav_event(assignment, HavEventKind.ERROR) if failed else None
                to_state = S.FAILED if failed else S.REPORTED
                reports.append(a_report(assignment, to_state=to_state, hav_event=event))
        await store.ledger.write(RequestWrites(host.host, tuple(reports), detach=rng.random() < 0.1))


def settled(facts: JobFacts) -> JobSettlement:
    """The first success is canonical; a job without one gets another instance."""
    back = [one for one in facts.instances if one.state is S.REPORTED]
    unsent = [one for one in facts.instances if one.state in (S.UNSENT, S.IN_PROGRESS)]
    if facts.state is not JobState.OPEN or not back:
        new = 1 if facts.state is JobState.OPEN and not unsent else 0
        return JobSettlement(
            facts.job_id, facts.serial, facts.state, LATER, facts.canonical_instance_id, new_instances=new, retries=new
        )
    steps = [InstanceStep(one.instance_id, S.REPORTED, S.VALID) for one in back]
    steps += [InstanceStep(one.instance_id, S.UNSENT, S.CANCELLED) for one in unsent if one.state is S.UNSENT]
    return JobSettlement(
        facts.job_id, facts.serial, JobState.VALID, LATER, back[0].instance_id, steps=tuple(steps), hasten=True
    )


async def settle_all(store: PostgresStore, busy: asyncio.Event) -> None:
    """Run the validator until the volunteers are done and nothing is left."""
    for _ in count():
        was_busy = busy.is_set()
        facts = await store.unsettled.unsettled(50, now=NOW)
        await store.unsettled.settle([settled(job) for job in facts])
        if not facts and not was_busy:
            return


async def sweep(store: PostgresStore, busy: asyncio.Event) -> None:
    """Run the sweeper, at an instant at which everything in progress is overdue."""
    while busy.is_set():
        overdue = await store.overdue.overdue(now=LATER, limit=5)
        steps = [InstanceStep(one.held.instance_id, S.IN_PROGRESS, S.TIMED_OUT) for one in overdue]
        await store.overdue.time_out(steps, now=LATER)
        await store.overdue.count_due(now=LATER)


async def test_nodes_validator_and_sweeper_work_at_once(store: PostgresStore) -> None:
    other = await open_store(store.ledger.writes.dsn, min_size=1, max_size=4)
    never_all = VOLUNTEERS * REQUESTS * AT_ONCE + 1  # at any speed the aborted batch has jobs left
    batches = [await a_submitted_batch(store, jobs=jobs, quorum=quorum) for jobs, quorum in ((40, 1), (never_all, 2))]
    batch_ids = [batch.batch_id for batch in batches]
    hosts = [await a_registered_host(store) for _ in range(30)]
    await the_version(store)
    busy = asyncio.Event()
    busy.set()

    validator = asyncio.create_task(settle_all(other, busy))
    sweeper = asyncio.create_task(sweep(store, busy))
    await asyncio.gather(*(volunteers((store, other)[seed % 2], hosts, batch_ids, seed) for seed in range(VOLUNTEERS)))
    aborted = await store.submissions.abort_batch(batch_ids[1], now=LATER)
    busy.clear()
    await asyncio.gather(validator, sweeper)
    await other.close()

    assert aborted.state is BatchState.ABORTED
    assert await waiting_of(store, batch_ids[1]) == []
    assert await store.views.check_counters() == []
    counts = (await store.views.batch(batch_ids[0])).counts
    assert counts.jobs_validated > 0


async def test_a_batch_settled_by_two_validators_at_once_is_complete(store: PostgresStore) -> None:
    """Each ends the last open job of its half; one of them notices that the batch is complete."""
    other = await open_store(store.ledger.writes.dsn, min_size=1, max_size=2)
    batch = await a_submitted_batch(store, jobs=2)
    host, version = await a_registered_host(store), await the_version(store)
    sent = tuple(an_assignment(one, host, version) for one in await waiting_of(store, batch.batch_id))
    await store.ledger.write(RequestWrites(host.host, assignments=sent))
    await store.ledger.write(RequestWrites(host.host, tuple(a_report(assignment) for assignment in sent)))
    one, two = await store.unsettled.unsettled(9, now=NOW)

    await asyncio.gather(store.unsettled.settle([settled(one)]), other.unsettled.settle([settled(two)]))
    await other.close()

    ended = await store.views.batch(batch.batch_id)
    assert (ended.state, ended.ended_at, ended.counts.jobs_validated) == (BatchState.COMPLETE, LATER, 2)


async def test_crossed_ends_and_retries_do_not_deadlock(
    store: PostgresStore,
) -> None:
    """Neither batch has unsent instances, so the retry marks it; both transactions update its row at once."""
    one, two = [(await a_submitted_batch(store, jobs=1)).batch_id for _ in range(2)]
    first, second, other = [await connect(store.ledger.writes.dsn) for _ in range(3)]
    nothing_left = CountChanges()
    for batch_id in (one, two):
        nothing_left.add(batch_id, BatchCounts(unsent=-1, sent=1))
    await nothing_left.write(other)
    assert await store.waiting.ready_batches(9) == []

    async def count(connection: DatabaseSession, *, ended: BatchId, retried: BatchId) -> None:
        changes = CountChanges()
        changes.add(ended, BatchCounts(jobs_failed=1))
        changes.add(retried, BatchCounts(unsent=1))
        async with connection.transaction():
            await changes.write(connection, ended=[ended])

    async with other.transaction():
        await other.execute("SELECT 1 FROM batch FOR UPDATE")
        counting = [
            asyncio.create_task(count(first, ended=one, retried=two)),
            asyncio.create_task(count(second, ended=two, retried=one)),
        ]
        await until_blocked(other, 2, *counting)
    await asyncio.gather(*counting)

    assert [batch.batch_id for batch in await store.waiting.ready_batches(9)] == [one, two]
    for batch_id in (one, two):  # as in the rows
        back = CountChanges()
        back.add(batch_id, BatchCounts(jobs_failed=-1, sent=-1))
        await back.write(other)
    for session in (first, second, other):
        await session.close()


async def test_seventeenth_counting_transaction_waits(store: PostgresStore) -> None:
    """Each takes the first free stripe; when one ends, the next gets its stripe."""
    batch = await a_submitted_batch(store, jobs=1)
    nodes = [await asyncpg.connect(store.ledger.writes.dsn) for _ in range(17)]
    stripes = "SELECT stripe FROM batch_count WHERE batch_id = $1 AND sent > 0 ORDER BY stripe"
    changes = CountChanges()
    changes.add(batch.batch_id, BatchCounts(sent=1))
    transactions = [node.transaction() for node in nodes]
    for transaction in transactions:
        await transaction.start()

    for node in nodes[:16]:
        await changes.write(node)
    one_too_many = asyncio.create_task(changes.write(nodes[16]))
    await until_blocked(nodes[0], 1, one_too_many)
    for transaction in transactions[:16]:
        await transaction.commit()
    await one_too_many
    await transactions[16].rollback()
    assert [row["stripe"] for row in await nodes[0].fetch(stripes, batch.batch_id)] == list(range(16))
    await changes.write(nodes[0])
    assert (
        await nodes[0].fetchval("SELECT sent FROM batch_count WHERE batch_id = $1 AND stripe = 0", batch.batch_id) == 2
    )

    await nodes[0].execute("UPDATE batch_count SET sent = 0 WHERE batch_id = $1", batch.batch_id)
    for node in nodes:
        await node.close()


async def test_groups_sending_siblings_crosswise_do_not_deadlock(store: PostgresStore) -> None:
    """Both write keys (job, volunteer); a third transaction delays the first one in the middle of its keys."""
    batch = await a_submitted_batch(store, jobs=3, quorum=2)
    mine, version = await a_registered_host(store), await the_version(store)
    theirs_too, third = [await a_registered_host(store, volunteer_id=mine.volunteer_id) for _ in range(2)]
    copies: dict[int, list[Candidate]] = {}
    for one in sorted(await waiting_of(store, batch.batch_id), key=lambda one: one.ready.instance_id):
        copies.setdefault(one.ready.job_id, []).append(one)
    (a, other_a), (b, other_b), (held_up, blocking) = (copies[job_id] for job_id in sorted(copies))
    nodes = [await connect(store.ledger.writes.dsn) for _ in range(3)]
    blocker, first, second = [node.transaction() for node in nodes]
    for transaction in (blocker, first, second):
        await transaction.start()

    await send_only(nodes[0], third, [blocking], version)
    ours = asyncio.create_task(send_only(nodes[1], mine, [a, held_up, b], version))
    await until_blocked(nodes[0], 1, ours)
    theirs = asyncio.create_task(send_only(nodes[2], theirs_too, [other_b, other_a], version))
    await until_blocked(nodes[0], 2, theirs)
    await blocker.rollback()

    assert set((await ours).fates.values()) == {AssignmentFate.SENT}
    await first.rollback()
    assert set((await theirs).fates.values()) == {AssignmentFate.SENT}
    await second.rollback()
    for node in nodes:
        await node.close()


async def send_only(
    node: DatabaseSession, host: RegisteredHost, chosen: Sequence[Candidate], version: AppVersion
) -> WriteOutcome:
    """Send them in the node's transaction."""
    assignments = tuple(an_assignment(one, host, version) for one in chosen)
    [outcome] = await write_many(node, [RequestWrites(host.host, assignments=assignments)], SchedulerSettings())
    return outcome


async def test_group_locks_ended_instances_by_id(store: PostgresStore) -> None:
    """Otherwise it would hold the later instance and wait for the earlier one, while a settlement does the reverse."""
    batch = await a_submitted_batch(store, jobs=2)
    detached, reporting = [await a_registered_host(store) for _ in range(2)]
    lost = await a_sent_instance(store, batch.batch_id, detached)
    said = await a_sent_instance(store, batch.batch_id, reporting)
    assert lost.instance_id < said.instance_id
    other = await asyncpg.connect(store.ledger.writes.dsn)
    transaction = other.transaction()
    await transaction.start()
    lock = "SELECT 1 FROM instance WHERE instance_id = $1 FOR UPDATE NOWAIT"
    await other.execute(lock, lost.instance_id)

    group = asyncio.gather(
        store.ledger.write(RequestWrites(reporting.host, reports=(a_report(said),))),
        store.ledger.write(RequestWrites(detached.host, detach=True)),
    )
    await until_blocked(other, 1, group)
    await other.execute(lock, said.instance_id)

    await transaction.commit()
    await other.close()
    await group
    states = [(await store.views.job(one.job_id)).instances[0].state for one in (lost, said)]
    assert states == [S.ABORTED, S.REPORTED]
