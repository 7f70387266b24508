"""The background process: time-outs, validation and the other duties that must not stall a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog

from domain.clock import Clock
from operations.compose import BackgroundParts, build_background
from operations.metrics.board import Board
from operations.project import Project
from operations.starting import start_when_available
from operations.worker import run_until

log = structlog.get_logger()


class Background:
    """One process per node; each duty runs once per cluster, under its own lock."""

    def __init__(self, project: Project, clock: Clock, *, board: Board | None = None) -> None:
        self._project = project
        self._board = board
        self._clock = clock

    async def run(self, stop: asyncio.Event, say_ready: Callable[[], None]) -> None:
        """Do the duties until `stop` is set. A process that starts while the database is away waits for it."""
        async with AsyncExitStack() as stack:
            parts = await start_when_available(self._start, stack, stop, self._clock)
            if parts is None:
                return
            say_ready()
            log.info("background duties run", duties=sorted(parts.tasks))
            await run_until(stop, parts.tasks)

    async def _start(self, stack: AsyncExitStack) -> BackgroundParts:
        return await stack.enter_async_context(build_background(self._project, self._clock, board=self._board))
