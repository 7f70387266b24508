"""Statements that wait for a lock: tests continue once the expected wait is visible."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

# Of this database only: tests of other databases run on the same server at the same time.
BLOCKED = """
    SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND datname = current_database()
"""


async def until_blocked(look: asyncpg.Connection[asyncpg.Record], count: int, *tasks: asyncio.Future[Any]) -> None:
    """Return when this many sessions of this database wait for a lock. Fails if one of the tasks ends first."""
    while await look.fetchval(BLOCKED) < count:
        await look.execute("SELECT pg_stat_clear_snapshot()")  # a transaction caches pg_stat_activity
        assert not any(task.done() for task in tasks)
        await asyncio.wait(tasks, timeout=0.01)
