"""The stores under test. Every test ends with a recount: counters must equal the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.memory import MemoryStore
from tests.pg import opened_store
from tests.stores import Store


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.database)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with _opened(request.param) as opened:
        yield opened
        assert list(await opened.views.check_counters()) == []


@asynccontextmanager
async def _opened(kind: str) -> AsyncIterator[Store]:
    if kind == "memory":
        yield MemoryStore()
        return
    async with opened_store() as opened:
        yield opened
