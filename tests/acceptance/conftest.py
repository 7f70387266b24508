"""All tests here need a PostgreSQL server; each runs the whole server on its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.server import LiveServer, live_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture
async def server(tmp_path: Path, keys_dir: Path) -> AsyncIterator[LiveServer]:
    """One worker and the periodic tasks; at the end counters must equal the rows."""
    async with live_server(tmp_path, keys_dir) as running:
        yield running
        assert await running.store.views.check_counters() == []


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    """A project with an app, and two submitters in separate accounts."""
    await furnish(server)
    return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_pi(tmp_path_factory: pytest.TempPathFactory, keys_dir: Path) -> AsyncIterator[LiveServer]:
    """Such a project for all tests of a module whose requests are refused, and change nothing that others read."""
    async with live_server(tmp_path_factory.mktemp("shared"), keys_dir) as running:
        await furnish(running)
        yield running
        assert await running.store.views.check_counters() == []


async def furnish(server: LiveServer) -> None:
    await server.add_app()
    for who in ("ada", "bob"):
        await server.store.people.add_account(f"{who}s", parent=None, shares=1.0)
        await server.store.people.add_submitter(who, account=f"{who}s", shares=1.0, now=server.clock.now())
