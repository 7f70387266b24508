"""Every test here breaks something real: processes, connections, database servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pg import database


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    """A migrated database."""
    async with database() as made:
        yield made
