"""Facts about all hosts are read once for concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from administration.attention.service import AttentionViews
from domain.settings import Settings
from store.postgres import PostgresStore
from tests.memory import MemoryStore
from tests.unit.administration.clocks import StillClock


class Gate:
    """A query that ends when the test says so."""

    def __init__(self, query: Callable[..., Awaitable[object]]) -> None:
        self._query = query
        self.calls, self.begun, self.may_end = 0, asyncio.Event(), asyncio.Event()

    async def __call__(self, **asked: Any) -> object:
        self.calls += 1
        self.begun.set()
        await self.may_end.wait()
        return await self._query(**asked)


async def test_concurrent_callers_share_one_failure() -> None:
    async def fails(**asked: Any) -> object:
        raise ConnectionError

    alike = Gate(fails)
    known = SimpleNamespace(reserving=SimpleNamespace(alike_hosts=alike))
    views = AttentionViews(cast(PostgresStore, known), Settings, StillClock())
    callers = [asyncio.ensure_future(views.platforms()) for _ in range(3)]
    await alike.begun.wait()
    callers[0].cancel()
    alike.may_end.set()

    found = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(one) for one in found] == [asyncio.CancelledError, ConnectionError, ConnectionError]
    assert alike.calls == 1
    with pytest.raises(ConnectionError):
        await views.platforms()
    assert alike.calls == 2


@pytest.mark.parametrize("of", ["platforms", "failing_versions"])
async def test_concurrent_callers_share_one_reading(of: str) -> None:
    store = MemoryStore()
    alike, versions = Gate(store.reserving.alike_hosts), Gate(store.attention.versions)
    names = ("applications", "listings", "insight")
    known = SimpleNamespace(
        **{name: getattr(store, name) for name in names},
        reserving=SimpleNamespace(alike_hosts=alike),
        attention=SimpleNamespace(versions=versions, hosts=store.attention.hosts, contacts=store.attention.contacts),
    )
    views = AttentionViews(cast(PostgresStore, known), Settings, StillClock())
    gate, read = (alike, views.platforms) if of == "platforms" else (versions, lambda: views.failing_versions({}))
    first = asyncio.ensure_future(read())
    await gate.begun.wait()
    second = asyncio.ensure_future(read())
    gate.may_end.set()

    assert await first == await second
    assert gate.calls == 1
