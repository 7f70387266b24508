"""Tests that one process runs a periodic task, and another takes over when it is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from domain.errors import UnavailableError
from domain.settlement import JobShare
from store.locks import DEAD_S, DutyLocks
from store.pool import Connection, Database
from store.postgres import open_store
from tests.builders import NOW
from tests.facts import states
from tests.faults.waiting import until
from tests.pg import with_database
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

END_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
async def nodes(dsn: str) -> AsyncIterator[tuple[DutyLocks, DutyLocks]]:
    one, other = DutyLocks(dsn), DutyLocks(dsn)
    yield one, other
    await one.close()
    await other.close()


async def test_a_duty_is_the_first_ones_for_as_long_as_it_lives(nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    assert [await one.mine("sweep"), await other.mine("sweep"), await one.mine("sweep")] == [True, False, True]
    assert await other.mine("validate")

    await one.close()

    assert await other.mine("sweep")
    assert not await one.mine("sweep")


async def test_lost_connection_loses_the_task(dsn: str, nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    await one.mine("sweep")
    connection = await asyncpg.connect(dsn)
    await connection.fetch(END_OTHERS)
    await connection.close()

    assert await other.mine("sweep")
    assert await not_mine(one, "sweep")


async def not_mine(locks: DutyLocks, duty: str) -> bool:
    """Return whether another process runs it; the first query may only notice that the connection is gone."""
    try:
        return not await locks.mine(duty)
    except UnavailableError:
        return not await locks.mine(duty)


async def test_no_task_runs_without_a_database(dsn: str) -> None:
    with pytest.raises(UnavailableError, match="no_such_database"):
        await DutyLocks(with_database(dsn, "no_such_database")).mine("sweep")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    """Yield the pool that writes the task's results."""
    opened = await Database.open(dsn, min_size=1, max_size=2)
    yield opened
    await opened.close()


NOTE = "INSERT INTO duty (name, done_at) VALUES ($1, 0)"
SETTING = "SELECT reset_val FROM pg_settings WHERE name = 'idle_session_timeout'"


async def test_server_ends_lock_session_after_silence(nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    await one.mine("sweep")
    assert one._connection is not None
    assert await one._connection.fetchval(SETTING) == str(int(DEAD_S * 1000))
    await one._connection.execute("SET idle_session_timeout = 50")  # it is silent from now on

    async def taken_over() -> bool:
        return await other.mine("sweep")

    await until(taken_over, 10.0, "the other one has the task")
    assert await not_mine(one, "sweep")


async def test_duty_given_up_goes_to_another(nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    assert await one.mine("sweep") and await one.mine("validate")

    await one.give_up("sweep")

    assert await other.mine("sweep")
    assert [await one.mine("sweep"), await one.mine("validate")] == [False, True]


async def test_fence_refuses_what_begins_after_takeover(
    dsn: str, database: Database, nodes: tuple[DutyLocks, DutyLocks]
) -> None:
    """A process wakes in the middle of a round, after another one took over the task."""
    one, other = nodes
    assert await one.mine("sweep")
    with one.fence("sweep"):
        async with database.transaction() as connection:
            await connection.execute(NOTE, "before")
        await end_session(dsn, one)
        assert await other.mine("sweep")

        with states(UnavailableError, "lost the lock", "task sweep"):
            async with database.transaction() as connection:
                await connection.execute(NOTE, "as if nothing had happened")

    with other.fence("sweep"):
        async with database.transaction() as connection:
            await connection.execute(NOTE, "by the other one")
    async with database.transaction() as connection:
        assert await noted(connection) == ["before", "by the other one"]


async def test_takeover_waits_for_transaction_of_holder(
    dsn: str, database: Database, nodes: tuple[DutyLocks, DutyLocks]
) -> None:
    """The lock is lost in the middle of a transaction: its writes are visible before another process begins."""
    one, other = nodes
    assert await one.mine("sweep")
    with one.fence("sweep"):
        async with database.transaction() as connection:
            await end_session(dsn, one)
            assert not await other.mine("sweep")
            assert await other.mine("validate")
            await connection.execute(NOTE, "before")

    assert await other.mine("sweep")


@pytest.fixture
async def sharers(dsn: str) -> AsyncIterator[tuple[DutyLocks, DutyLocks]]:
    one, other = DutyLocks(dsn, {"validate"}), DutyLocks(dsn, {"validate"})
    yield one, other
    await one.close()
    await other.close()


async def shares(*processes: DutyLocks) -> list[JobShare]:
    """Return the processes' shares, in order."""
    assert all([await one.mine("validate") for one in processes])
    return sorted([one.share("validate") for one in processes], key=lambda share: share.part)


async def test_processes_divide_a_shared_task(dsn: str, sharers: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = sharers
    assert await shares(one) == [JobShare(0, 1)]
    assert await other.mine("validate")
    assert await shares(one, other) == [JobShare(0, 2), JobShare(1, 2)]

    await one.give_up("validate")
    assert await shares(other) == [JobShare(0, 1)]
    assert await one.mine("validate") and await shares(one, other) == [JobShare(0, 2), JobShare(1, 2)]

    await end_session(dsn, one)
    assert await shares(other) == [JobShare(0, 1)]
    assert await one.mine("sweep") and not await other.mine("sweep")  # other tasks are not divided


async def test_task_is_not_shared_with_its_only_holder(
    nodes: tuple[DutyLocks, DutyLocks], sharers: tuple[DutyLocks, DutyLocks]
) -> None:
    """An older version of Muster takes the lock alone: while it has it, newer processes stand by, and vice versa."""
    (older, _), (newer, _) = nodes, sharers
    assert await older.mine("validate") and not await newer.mine("validate")
    await older.close()
    assert await newer.mine("validate") and not await older.mine("validate")


async def test_fence_of_lost_lock_is_refused(dsn: str, nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    assert await other.mine("sweep") and not await one.mine("sweep")

    with pytest.raises(UnavailableError), one.fence("sweep"):
        pass
    with pytest.raises(UnavailableError), DutyLocks(dsn).fence("sweep"):
        pass


async def test_fence_refuses_attempt_to_compare(dsn: str) -> None:
    """An attempt counted by a process that lost the validator would keep the job from its successor for a minute."""
    one, other = DutyLocks(dsn, {"validator"}), DutyLocks(dsn, {"validator"})
    store = await open_store(dsn, min_size=1, max_size=2)
    try:
        host = await a_registered_host(store)
        batch = await a_submitted_batch(store, jobs=1)
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, a_report(sent))
        assert await one.mine("validator")
        with one.fence("validator"):
            await end_session(dsn, one)
            assert await other.mine("validator")
            with states(UnavailableError, "lost the lock", "task validator"):
                await store.unsettled.begin_comparisons([sent.job_id], now=NOW)
        assert [job.job_id for job in await store.unsettled.unsettled(9, now=NOW)] == [sent.job_id]
        with other.fence("validator"):
            assert await store.unsettled.begin_comparisons([sent.job_id], now=NOW) == {sent.job_id: 1}
    finally:
        await one.close()
        await other.close()
        await store.close()


async def end_session(dsn: str, locks: DutyLocks) -> None:
    """End the session, as the server does after 30 s without a command."""
    connection = await asyncpg.connect(dsn)
    try:
        assert await connection.fetchval("SELECT pg_terminate_backend($1, 5000)", locks._pid)
    finally:
        await connection.close()


async def noted(connection: Connection) -> list[str]:
    return [row["name"] for row in await connection.fetch("SELECT name FROM duty ORDER BY name")]
