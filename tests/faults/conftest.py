"""Every test here breaks something real: processes, connections, database servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pg import database
from transfer.keys import create_keys


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture(scope="session")
def keys_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's keys, created once: this takes longer than a test."""
    folder = tmp_path_factory.mktemp("keys") / "keys"
    create_keys(folder)
    return folder


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    """A migrated database."""
    async with database() as made:
        yield made
