"""An upgrade of a serving node: a `pre` step, a restart, a `post` step, under load; then undone."""

from __future__ import annotations

import asyncpg

from domain.clock import SystemClock
from store.migrate import Migration, _apply
from tests.chaos.node import Node
from tests.faults.waiting import CLOCK

PRE = """
    ALTER TABLE instance ADD COLUMN next_version_notes text;
    ALTER TABLE batch ADD COLUMN next_version_notes text;
    ALTER TABLE host ADD COLUMN next_version_notes text;
"""
POST = """
    ALTER TABLE instance DROP COLUMN next_version_notes;
    ALTER TABLE batch DROP COLUMN next_version_notes;
    ALTER TABLE host DROP COLUMN next_version_notes;
"""
FORGET = "DELETE FROM schema_version WHERE version >= 9001"
TRIES, PAUSE_S = 20, 0.2


class Step(Migration):
    """A migration of the next version."""

    __slots__ = ()

    def sql(self) -> str:
        return PRE if self.phase == "pre" else POST


async def upgrade(dsn: str, *, restart: Node) -> None:
    """Run both steps with a restart in between, by the production function; restore the schema afterwards."""
    connection = await asyncpg.connect(dsn)
    try:
        await _applied(connection, Step(9001, "pre", "9001_pre_notes.sql"))
        await restart.stop()
        await restart.start()
        await _applied(connection, Step(9002, "post", "9002_post_notes.sql"))
        await connection.execute(FORGET)
    finally:
        await connection.close()


async def take_back(dsn: str) -> None:
    """Undo an upgrade interrupted by another fault."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(POST.replace("DROP COLUMN", "DROP COLUMN IF EXISTS"))
        await connection.execute(FORGET)
    finally:
        await connection.close()


async def _applied(connection: asyncpg.Connection[asyncpg.Record], step: Step) -> None:
    for _ in range(TRIES):
        if await _apply(connection, step, SystemClock().now()):
            return
        await CLOCK.sleep(PAUSE_S)
