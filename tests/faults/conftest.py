"""Every test here breaks something real: processes, connections, database servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.waiting import CLOCK
from tests.pg import database

HANGS_S = 240.0  # before pytest ends the test, which does not say what its tasks wait for


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    """A migrated database."""
    async with database() as made:
        yield made


@pytest.fixture(autouse=True)
async def _hang_is_explained() -> AsyncIterator[None]:
    """Print where every task waits if the test hangs."""
    watch = asyncio.create_task(_tell_where())
    yield
    watch.cancel()


async def _tell_where() -> None:
    await CLOCK.sleep(HANGS_S)
    for task in asyncio.all_tasks():
        print(task.get_name(), *_waits(task.get_coro()), sep="\n  ")


def _waits(awaited: Any) -> Iterator[str]:  # Any: a coroutine, an async generator or a future
    """Yield the places at which a coroutine waits, the outermost first."""
    while awaited is not None:
        frame = next((found for kind in ("cr", "ag", "gi") if (found := getattr(awaited, f"{kind}_frame", None))), None)
        yield repr(awaited) if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
        waits = ("cr_await", "ag_await", "gi_yieldfrom")
        awaited = next((found for name in waits if (found := getattr(awaited, name, None)) is not None), None)
