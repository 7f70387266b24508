"""A duty is done by one process, and by another when that one is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from domain.errors import UnavailableError
from store.duties import DutyLocks
from tests.pg import with_database

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


async def test_whoever_loses_the_connection_loses_the_duty(dsn: str, nodes: tuple[DutyLocks, DutyLocks]) -> None:
    one, other = nodes
    await one.mine("sweep")
    connection = await asyncpg.connect(dsn)
    await connection.fetch(END_OTHERS)
    await connection.close()

    assert await other.mine("sweep")
    assert await not_mine(one, "sweep")


async def not_mine(locks: DutyLocks, duty: str) -> bool:
    """Whether it is another's; the first question may find out only that the connection is gone."""
    try:
        return not await locks.mine(duty)
    except UnavailableError:
        return not await locks.mine(duty)


async def test_without_a_database_nobody_does_anything(dsn: str) -> None:
    with pytest.raises(UnavailableError, match="no_such_database"):
        await DutyLocks(with_database(dsn, "no_such_database")).mine("sweep")
