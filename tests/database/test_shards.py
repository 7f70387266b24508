"""Tests that workers divide the shards, and that a dead worker's shards become free."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from domain.errors import UnavailableError
from domain.units import Instant, Seconds
from feeder.ports import Shards
from store.locks import SILENCE_S, PostgresShards
from tests.pg import with_database


class StoppedClock:
    """A manual clock."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> Instant:
        return Instant(self.at)

    def monotonic(self) -> Seconds:
        return Seconds(self.at)

    async def sleep(self, duration_s: float) -> None:
        self.at += duration_s


@pytest.fixture
async def workers(dsn: str) -> AsyncIterator[list[PostgresShards]]:
    """Return three workers of one cluster that have not started."""
    made = [PostgresShards(dsn, StoppedClock()) for _ in range(3)]
    yield made
    for worker in made:
        await worker.close()


async def test_a_worker_owns_nothing_before_it_has_asked(workers: list[PostgresShards]) -> None:
    feeds: Shards = workers[0]
    assert feeds.owned() == frozenset()


async def test_a_lone_worker_owns_every_shard(workers: list[PostgresShards]) -> None:
    assert await workers[0].run_once() == frozenset(range(64)) == workers[0].owned()


async def test_workers_come_to_equal_shares_that_do_not_overlap(workers: list[PostgresShards]) -> None:
    await workers[0].run_once()
    for _ in range(2):
        for worker in workers:
            await worker.run_once()

    shares = [worker.owned() for worker in workers]
    assert sorted(len(share) for share in shares) == [21, 21, 22]
    assert frozenset().union(*shares) == frozenset(range(64))


async def test_the_shards_of_a_dead_worker_are_taken_over(workers: list[PostgresShards]) -> None:
    for _ in range(2):
        await workers[0].run_once()
        await workers[1].run_once()
    assert len(workers[0].owned()) == 32

    await workers[1].close()
    await workers[0].run_once()

    assert workers[0].owned() == frozenset(range(64))


async def test_a_worker_whose_connection_is_silent_owns_nothing(dsn: str) -> None:
    clock = StoppedClock()
    worker = PostgresShards(dsn, clock)
    await worker.run_once()

    clock.at += SILENCE_S
    assert len(worker.owned()) == 64
    clock.at += 0.1
    assert worker.owned() == frozenset()
    await worker.close()


async def test_worker_without_connection_owns_nothing_and_restarts(dsn: str) -> None:
    worker = PostgresShards(dsn, StoppedClock())
    await worker.run_once()
    other = await asyncpg.connect(dsn)
    await end_other_connections(other)
    while worker.owned():  # until the loss is noticed
        await other.fetchval("SELECT 1")
    await other.close()

    assert await worker.run_once() == frozenset(range(64)) == worker.owned()
    await worker.close()


async def test_worker_without_database_gets_unavailable(dsn: str) -> None:
    worker = PostgresShards(with_database(dsn, "no_such_database"), StoppedClock())
    with pytest.raises(UnavailableError, match="no_such_database"):
        await worker.run_once()
    assert worker.owned() == frozenset()


async def end_other_connections(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
