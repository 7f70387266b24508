"""Tests the store's figures of its connections, groups and database."""

from __future__ import annotations

from domain.dispatch import RequestKey
from domain.units import HostId
from store.postgres import PostgresStore
from tests.builders import NOW


async def test_connections_and_calls_are_counted(store: PostgresStore) -> None:
    before = store.figures.pool()

    await store.settings.settings()
    async with store.figures._database.transaction():
        busy = store.figures.pool()

    after = store.figures.pool()
    assert (after.calls - before.calls, before.most) == (2, 4)
    assert (busy.connections - busy.idle, after.connections - after.idle) == (1, 0)


async def test_groups_are_counted_by_their_size(store: PostgresStore) -> None:
    assert store.figures.groups()["read"].connections == 0

    await store.ledger.read(RequestKey(b"stranger", HostId(0)))

    read, write = store.figures.groups()["read"], store.figures.groups()["write"]
    assert (dict(read.sizes), read.waiting, read.connections) == ({1: 1}, 0, 1)
    assert dict(write.sizes) == {}


async def test_the_database_tells_its_size_and_sessions(store: PostgresStore) -> None:
    async with store.figures._database.transaction() as open_one:
        await open_one.fetchval("SELECT 1")
        found = await store.figures.database(NOW)

    assert found.size_bytes > 1_000_000
    assert found.sessions["active"] >= 1
    assert found.sessions["idle in transaction"] == 1
    assert found.oldest_s >= 0.0  # NOW may precede its start: then it is 0


async def test_no_user_is_signed_in_at_first(store: PostgresStore) -> None:
    assert await store.figures.web_sessions(NOW) == {"people": 0, "volunteers": 0}
