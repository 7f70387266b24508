"""The stores under contract. Every test ends with a recount: counters always equal the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from store.memory import MemoryStore
from tests.worlds import Store


@pytest.fixture(params=["memory"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    opened: Store = MemoryStore()
    yield opened
    assert list(await opened.views.check_counters()) == []
    await opened.close()
