"""Tests that validators of several processes divide the jobs, and settle each of them once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import asyncpg
import pytest

from domain.batches import BatchState
from domain.dispatch import Assignment, RequestWrites
from domain.errors import UnavailableError
from domain.jobs import JobClass, ValidatorKind
from domain.settlement import JobShare
from domain.units import BatchId, HostId, JobId, later
from jobs.comparisons import Compared, Comparison
from jobs.validator import Validator, ValidatorReport
from store.locks import DutyLocks
from store.postgres import PostgresStore, open_store
from tests.builders import NOW, a_job_class
from tests.conformance.to_settle import valid
from tests.database.blocking import until_blocked
from tests.facts import states
from tests.faults.waiting import until
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_report, a_submitted_batch, an_assignment, the_version, waiting_of

DUTY = "validator"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Comparing:
    """Comparisons that end when the test says so; all outputs agree."""

    at_once = 100

    def __init__(self) -> None:
        self.of: list[frozenset[int]] = []  # instances of each
        self.may_end = asyncio.Event()

    async def compare(self, comparison: Comparison) -> Compared:
        self.of.append(frozenset(comparison.outputs))
        await self.may_end.wait()
        return Compared(dict.fromkeys(comparison.outputs, 0))


@dataclass
class Node:
    """A background process with its own connections and locks."""

    store: PostgresStore
    locks: DutyLocks
    comparing: Comparing
    validator: Validator

    async def round(self) -> ValidatorReport:
        """Run one round as the periodic task does. Raises UnavailableError."""
        assert await self.locks.mine(DUTY)
        with self.locks.fence(DUTY):
            return await self.validator.run_once()


@pytest.fixture
async def nodes(dsn: str) -> AsyncIterator[tuple[Node, Node]]:
    made = []
    for _ in range(2):
        store, locks, comparing = await open_store(dsn, min_size=1, max_size=3), DutyLocks(dsn, {DUTY}), Comparing()
        validator = Validator(
            store.unsettled,
            comparing,
            HandClock(later(NOW, 7200.0)),
            max_lost=lambda: 20,
            share=partial(locks.share, DUTY),
            limit=7,
            patience_s=0.0,
        )
        made.append(Node(store, locks, comparing, validator))
    for node in made:
        assert await node.locks.mine(DUTY)
    yield made[0], made[1]
    for node in made:
        node.validator.drop_comparisons()
        await node.locks.close()
        await node.store.close()


async def reported(
    store: PostgresStore, jobs: int, hosts: int = 3, job_class: JobClass | None = None
) -> list[tuple[BatchId, JobId]]:
    """Hosts report every job of two new batches, in random order."""
    there = [await a_registered_host(store) for _ in range(hosts)]
    batch_ids = [(await a_submitted_batch(store, jobs=jobs // 2, job_class=job_class)).batch_id for _ in range(2)]
    version = await the_version(store)
    waiting = [one for batch_id in batch_ids for one in await waiting_of(store, batch_id)]
    random.Random(1).shuffle(waiting)
    sent: list[Assignment] = []
    for number, host in enumerate(there):
        assignments = tuple(an_assignment(one, host, version) for one in waiting[number::hosts])
        await store.ledger.write(RequestWrites(host.host, assignments=assignments))
        await store.ledger.write(RequestWrites(host.host, tuple(a_report(one) for one in assignments)))
        sent += assignments
    return [(one.batch_id, one.job_id) for one in sent]


async def results_of(store: PostgresStore, hosts: Sequence[int]) -> int:
    """Return the valid results in the statistics of these hosts."""
    return sum([row.n_valid for host_id in hosts for row in (await store.views.host(HostId(host_id)))[1]])


async def jobs_left(store: PostgresStore) -> set[JobId]:
    return {facts.job_id for facts in await store.unsettled.unsettled(1000, now=later(NOW, 1e6))}


async def test_two_validators_settle_every_job_once(dsn: str, nodes: tuple[Node, Node]) -> None:
    """Their transactions touch the same batches and hosts in every round."""
    one, other = nodes
    jobs = await reported(one.store, 120)
    settled = {id(one): 0, id(other): 0}

    async def settle_all(node: Node) -> None:
        while await jobs_left(node.store):
            settled[id(node)] += (await node.round()).current

    await asyncio.gather(settle_all(one), settle_all(other))

    assert list(settled.values()) == [60, 60]
    assert await results_of(one.store, [1, 2, 3]) == 120
    assert await one.store.views.check_counters() == []
    for batch_id in {batch_id for batch_id, _ in jobs}:
        batch = await one.store.views.batch(batch_id)
        assert (batch.state, batch.counts.jobs_validated) == (BatchState.COMPLETE, 60)
    for node in nodes:
        await node.locks.close()
        await node.store.close()
    assert await deadlocks(dsn) == 0


async def deadlocks(dsn: str) -> int:
    """Return the deadlocks of the database, once every other session has ended and reported its own."""
    connection = await asyncpg.connect(dsn)

    async def alone() -> bool:
        return bool(await connection.fetchval(OTHERS) == 0)

    try:
        await until(alone, 10.0, "the other sessions have ended")
        return int(await connection.fetchval(DEADLOCKS))
    finally:
        await connection.close()


async def test_killed_validators_share_goes_to_the_other(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    await reported(one.store, 20)
    await one.locks.close()

    while (await other.round()).more:
        pass

    assert await jobs_left(other.store) == set()
    assert other.locks.share(DUTY) == JobShare(0, 1)


async def test_frozen_validator_writes_nothing_after_it_lost_its_share(dsn: str, nodes: tuple[Node, Node]) -> None:
    """It is frozen in the middle of a round, and its share is settled by the other process."""
    one, other = nodes
    await reported(one.store, 20)
    with one.locks.fence(DUTY):
        read = await one.store.unsettled.unsettled(99, now=NOW, share=one.locks.share(DUTY))
        assert read
        await end_session(dsn, one.locks)
        while (await other.round()).more:
            pass
        with states(UnavailableError, "lost the lock", "task validator"):
            await one.store.unsettled.settle([valid(job) for job in read])
    assert await results_of(other.store, [1, 2, 3]) == 20


async def end_session(dsn: str, locks: DutyLocks) -> None:
    """End the session, as the server does after 30 s without a command."""
    connection = await asyncpg.connect(dsn)
    try:
        assert await connection.fetchval("SELECT pg_terminate_backend($1, 5000)", locks._pid)
    finally:
        await connection.close()


async def test_job_settled_by_two_at_once_counts_once(dsn: str, nodes: tuple[Node, Node]) -> None:
    """The first is frozen in the middle of its transaction; the second waits, and finds the job settled."""
    one, other = nodes
    [(batch_id, _), *_] = await reported(one.store, 2, hosts=1)
    job = next(facts for facts in await one.store.unsettled.unsettled(9, now=NOW) if facts.batch_id == batch_id)
    connection = await asyncpg.connect(dsn)
    blocker = connection.transaction()
    await blocker.start()
    await connection.execute("SELECT 1 FROM batch WHERE batch_id = $1 FOR UPDATE", batch_id)

    first = asyncio.create_task(one.store.unsettled.settle([valid(job)]))
    await until_blocked(connection, 1, first)
    second = asyncio.create_task(other.store.unsettled.settle([valid(job)]))
    await until_blocked(connection, 2, first, second)
    await blocker.rollback()

    assert (await first, await second) == (1, 0)
    await connection.close()
    assert (await one.store.views.batch(batch_id)).counts.jobs_validated == 1


async def test_outputs_are_compared_by_one_of_two_validators(nodes: tuple[Node, Node]) -> None:
    """Both have read the jobs before the shares were divided; neither waits for the other's comparisons."""
    one, other = nodes
    by_content = a_job_class(validator=ValidatorKind.TOLERANCE, tolerance=1e-3)
    await reported(one.store, 10, job_class=by_content)
    whole = [
        Validator(node.store.unsettled, node.comparing, HandClock(NOW), max_lost=lambda: 20, patience_s=0.0)
        for node in nodes
    ]
    await asyncio.gather(*(validator.run_once() for validator in whole))
    assert sorted(map(len, (one.comparing.of + other.comparing.of))) == [1] * 10
    assert len({*one.comparing.of, *other.comparing.of}) == 10

    for node in nodes:
        node.comparing.may_end.set()
    reports = [await validator.run_once() for validator in whole for _ in range(2)]
    assert sum(report.validated for report in reports) == 10
    assert await jobs_left(one.store) == set()


async def test_comparison_waits_for_no_lock(dsn: str, nodes: tuple[Node, Node]) -> None:
    """Another process is frozen while it settles a job: the attempt to compare it is left out, the other begins."""
    [one, _] = nodes
    [(_, locked), (_, free)] = await reported(one.store, 2, hosts=1)
    connection = await asyncpg.connect(dsn)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM job_todo WHERE job_id = $1 FOR UPDATE", locked)
        async with asyncio.timeout(10):
            assert await one.store.unsettled.begin_comparisons([free, locked], now=NOW) == {free: 1}
    await connection.close()
