"""Tests that concurrent writes share a transaction, and a failing one does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import asyncpg
import pytest

from domain.apps import AppVersion, OnePerVolunteer
from domain.dispatch import AssignmentFate, RequestWrites, WriteOutcome
from domain.errors import UnavailableError
from domain.jobs import Candidate, InstanceState
from store.group import Grouped
from store.pool import Connection
from store.postgres import PostgresStore
from tests.database.blocking import until_blocked
from tests.worlds import (
    RegisteredHost,
    a_registered_app,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    the_version,
    waiting_of,
)


class Halved:
    """Work that writes 100 / n for each n, and can be delayed; zero fails."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, connection: Connection, asks: Sequence[int]) -> list[int]:
        self.groups.append(list(asks))
        await self.gate.wait()
        for ask in asks:
            await connection.execute("INSERT INTO written (n, quotient) VALUES ($1, 100 / $1)", ask)
        return [100 // ask for ask in asks]


@pytest.fixture
async def work(dsn: str) -> AsyncIterator[tuple[Halved, Grouped[int, int]]]:
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE written (n int, quotient int)")
    await connection.close()
    halved = Halved()
    grouped = Grouped(dsn, halved, in_transaction=True, most=10, lanes=1)
    yield halved, grouped
    halved.gate.set()
    await grouped.close()


async def written(dsn: str) -> list[int]:
    connection = await asyncpg.connect(dsn)
    rows = await connection.fetch("SELECT n FROM written ORDER BY n")
    await connection.close()
    return [row["n"] for row in rows]


async def test_asks_that_come_together_are_one_group(work: tuple[Halved, Grouped[int, int]]) -> None:
    halved, grouped = work
    assert await asyncio.gather(*(grouped.ask(n) for n in (1, 2, 4))) == [100, 50, 25]
    assert halved.groups == [[1, 2, 4]]


async def test_what_comes_while_a_group_runs_is_the_next_group(work: tuple[Halved, Grouped[int, int]]) -> None:
    halved, grouped = work
    halved.gate.clear()
    first = asyncio.create_task(grouped.ask(1))
    while not halved.groups:
        await asyncio.wait([first], timeout=0.001)
    others = [asyncio.create_task(grouped.ask(n)) for n in (2, 4)]
    await asyncio.wait(others, timeout=0.001)
    halved.gate.set()

    assert await first == 100
    assert [await other for other in others] == [50, 25]
    assert halved.groups == [[1], [2, 4]]


async def test_a_group_has_no_more_than_the_most_members(work: tuple[Halved, Grouped[int, int]]) -> None:
    halved, grouped = work
    await asyncio.gather(*(grouped.ask(1) for _ in range(25)))
    assert [len(group) for group in halved.groups] == [10, 10, 5]


async def test_call_fails_at_once_when_twenty_groups_wait(
    work: tuple[Halved, Grouped[int, int]],
) -> None:
    halved, grouped = work
    halved.gate.clear()
    asks = [asyncio.create_task(grouped.ask(1))]
    while not halved.groups:
        await asyncio.wait(asks, timeout=0.001)
    asks += [asyncio.create_task(grouped.ask(1)) for _ in range(20 * 10)]
    await asyncio.wait(asks, timeout=0.001)

    with pytest.raises(UnavailableError, match="busy: 200 requests are waiting"):
        await grouped.ask(1)

    halved.gate.set()
    assert await asyncio.gather(*asks) == [100] * 201
    assert await grouped.ask(2) == 50


async def test_only_the_bad_member_gets_the_exception(dsn: str, work: tuple[Halved, Grouped[int, int]]) -> None:
    _, grouped = work
    answers = await asyncio.gather(*(grouped.ask(n) for n in (5, 0, 10)), return_exceptions=True)

    assert (answers[0], answers[2]) == (20, 10)
    assert isinstance(answers[1], asyncpg.DivisionByZeroError)
    assert await written(dsn) == [5, 10]


async def test_an_asker_that_is_cancelled_does_not_stop_its_group(
    dsn: str, work: tuple[Halved, Grouped[int, int]]
) -> None:
    halved, grouped = work
    halved.gate.clear()
    asks = [asyncio.create_task(grouped.ask(n)) for n in (1, 2)]
    while not halved.groups:
        await asyncio.wait(asks, timeout=0.001)
    asks[0].cancel()
    halved.gate.set()

    assert await asks[1] == 50
    assert asks[0].cancelled() or (await asyncio.wait([asks[0]])) is not None
    assert await written(dsn) == [1, 2]


async def test_next_group_reconnects_after_lost_connection(dsn: str, work: tuple[Halved, Grouped[int, int]]) -> None:
    halved, grouped = work
    await grouped.ask(1)
    halved.gate.clear()
    asks = [asyncio.create_task(grouped.ask(n)) for n in (2, 4)]
    while len(halved.groups) < 2:
        await asyncio.wait(asks, timeout=0.001)
    connection = await asyncpg.connect(dsn)
    await connection.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()
    halved.gate.set()

    for ask in asks:
        with pytest.raises(UnavailableError):
            await ask
    assert await grouped.ask(5) == 20
    assert await written(dsn) == [1, 5]


async def test_a_closed_group_takes_no_more(work: tuple[Halved, Grouped[int, int]]) -> None:
    _, grouped = work
    await grouped.ask(1)
    await grouped.close()
    with pytest.raises(UnavailableError):
        await grouped.ask(2)


async def test_failing_request_leaves_others_written(store: PostgresStore) -> None:
    hosts = [await a_registered_host(store) for _ in range(3)]
    batch = await a_submitted_batch(store, jobs=3)
    version, waiting = await the_version(store), await waiting_of(store, batch.batch_id)
    good, bad, fine = (an_assignment(c, h, version) for c, h in zip(waiting, hosts, strict=True))
    bad = an_assignment(waiting[1], hosts[1], version, due_at=bad.sent_at)  # due when sent: a CHECK refuses it

    outcomes = await asyncio.gather(
        *(
            store.ledger.write(RequestWrites(host.host, assignments=(assignment,)))
            for host, assignment in zip(hosts, (good, bad, fine), strict=True)
        ),
        return_exceptions=True,
    )

    assert isinstance(outcomes[1], asyncpg.CheckViolationError)
    sent = [outcome.fates for outcome in (outcomes[0], outcomes[2]) if not isinstance(outcome, BaseException)]
    assert sent == [{good.instance_id: AssignmentFate.SENT}, {fine.instance_id: AssignmentFate.SENT}]
    counts = (await store.views.batch(batch.batch_id)).counts
    assert (counts.unsent, counts.in_progress) == (1, 2)


async def test_two_requests_for_one_instance_in_a_group_send_it_once(store: PostgresStore) -> None:
    hosts = [await a_registered_host(store) for _ in range(2)]
    batch = await a_submitted_batch(store, jobs=1)
    version, [one] = await the_version(store), await waiting_of(store, batch.batch_id)

    outcomes = await asyncio.gather(
        *(
            store.ledger.write(RequestWrites(host.host, assignments=(an_assignment(one, host, version),)))
            for host in hosts
        )
    )

    fates = [outcome.fates[one.ready.instance_id] for outcome in outcomes]
    assert sorted(fates) == [AssignmentFate.LOST, AssignmentFate.SENT]
    assert [len(outcome.sent) for outcome in outcomes] == [fate is AssignmentFate.SENT for fate in fates]


async def test_copies_for_one_volunteer_in_a_group_are_siblings(store: PostgresStore) -> None:
    first = await a_registered_host(store)
    second = await a_registered_host(store, volunteer_id=first.volunteer_id)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    version, waiting = await the_version(store), await waiting_of(store, batch.batch_id)

    outcomes = await asyncio.gather(
        *(
            store.ledger.write(RequestWrites(host.host, assignments=(an_assignment(one, host, version),)))
            for host, one in zip((first, second), waiting, strict=True)
        )
    )

    fates = sorted(fate for outcome in outcomes for fate in outcome.fates.values())
    assert fates == [AssignmentFate.SENT, AssignmentFate.SIBLING]


@pytest.mark.parametrize(
    ("quorum", "one_per_volunteer", "fate", "nths"),
    [
        (2, OnePerVolunteer.QUORUM, AssignmentFate.SIBLING, [0]),
        (2, OnePerVolunteer.NEVER, AssignmentFate.SENT, [0, 1]),
        (1, OnePerVolunteer.QUORUM, AssignmentFate.SENT, [0, 1]),
    ],
)
async def test_race_of_two_nodes_for_two_hosts_of_a_volunteer(
    store: PostgresStore, quorum: int, one_per_volunteer: OnePerVolunteer, fate: AssignmentFate, nths: list[int]
) -> None:
    """The limit may change in between: ours waits for the other node's dispatch and then counts it."""
    first = await a_registered_host(store)
    second = await a_registered_host(store, volunteer_id=first.volunteer_id)
    app = await a_registered_app(store)
    await store.applications.set_app(replace(app, one_per_volunteer=one_per_volunteer))
    batch = await a_submitted_batch(store, jobs=1, quorum=quorum, copies=2)
    version, (one, other) = await the_version(store), await waiting_of(store, batch.batch_id)

    outcome = await sent_beside(store, second, one, first, other, version)

    assert outcome.fates == {one.ready.instance_id: fate}
    connection = await asyncpg.connect(store.ledger.writes.dsn)
    found = await connection.fetch("SELECT nth FROM instance WHERE volunteer_id IS NOT NULL ORDER BY nth")
    await connection.close()
    assert [row["nth"] for row in found] == nths


async def test_a_race_between_two_nodes_for_one_host_ends_as_a_sibling(store: PostgresStore) -> None:
    """The other node's dispatch is not committed when ours looks for siblings; the unique index stops ours."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    version, (one, other) = await the_version(store), await waiting_of(store, batch.batch_id)

    outcome = await sent_beside(store, host, one, host, other, version)

    assert outcome.fates == {one.ready.instance_id: AssignmentFate.SIBLING}


async def sent_beside(
    store: PostgresStore,
    host: RegisteredHost,
    one: Candidate,
    other_host: RegisteredHost,
    other: Candidate,
    version: AppVersion,
) -> WriteOutcome:
    """Dispatch `one` while another node's dispatch of `other` is not committed."""
    node = await asyncpg.connect(store.ledger.writes.dsn)
    transaction = node.transaction()
    await transaction.start()
    await node.execute(
        "UPDATE instance SET state = 'in_progress', host_id = $2, volunteer_id = $3, app_version_id = $4, "
        "sent_at = 1, due_at = 2, timeout_at = 3 WHERE instance_id = $1",
        other.ready.instance_id,
        other_host.host_id,
        other_host.volunteer_id,
        version.app_version_id,
    )
    await node.execute(
        "INSERT INTO batch_count (batch_id, stripe, unsent, in_progress, sent) VALUES ($1, -1, -1, 1, 1)",
        other.ready.batch_id,
    )
    ours = asyncio.create_task(
        store.ledger.write(RequestWrites(host.host, assignments=(an_assignment(one, host, version),)))
    )
    await until_blocked(node, 1, ours)
    await transaction.commit()
    await node.close()
    return await ours


async def test_a_report_said_twice_in_a_group_counts_once(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    said = a_report(sent, to_state=InstanceState.FAILED)

    await asyncio.gather(*(store.ledger.write(RequestWrites(host.host, reports=(said,))) for _ in range(2)))

    counts = (await store.views.batch(batch.batch_id)).counts
    assert (counts.reported, counts.retries) == (1, 1)
