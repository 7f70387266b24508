"""Every test here needs a PostgreSQL server, and gets its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.postgres import PostgresStore
from tests.pg import database, opened_store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    """Return the DSN of a migrated database."""
    async with database() as made:
        yield made


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    """Yield a store; counters must equal the rows when the test ends."""
    async with opened_store() as opened:
        yield opened
        assert await opened.views.check_counters() == []
