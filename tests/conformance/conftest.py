"""The stores under test. Every test ends with a recount: counters must equal the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from tests.memory import MemoryStore
from tests.reused_database import ReusedDatabase
from tests.stores import Store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests in one event loop, which the sessions of the reused database need."""
    for item in items:
        if Path(__file__).parent in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reused_database() -> AsyncIterator[ReusedDatabase]:
    async with aclosing(ReusedDatabase()) as reused:
        yield reused


@pytest_asyncio.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.database)], loop_scope="session")
async def store(request: pytest.FixtureRequest, reused_database: ReusedDatabase) -> AsyncIterator[Store]:
    if request.param == "memory":
        memory = MemoryStore()
        yield memory
        assert list(await memory.views.check_counters()) == []
        return
    async with reused_database.store() as opened:
        yield opened
        assert list(await opened.views.check_counters()) == []
