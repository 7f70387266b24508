"""The background process: time-outs, validation and the other duties that must not stall a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog

from administration.project import Project
from domain.clock import Clock
from runtime.compose import BackgroundParts, build_background
from runtime.duty import Duty
from runtime.metrics.board import Board
from runtime.rounds import RoundThreads
from runtime.starting import start_when_available
from runtime.worker import run_until

THREADS = 32  # at most, for all duties

log = structlog.get_logger()


class Background:
    """One process per node; each duty runs once per cluster, under its own lock."""

    def __init__(self, project: Project, clock: Clock, *, board: Board | None = None) -> None:
        self._project = project
        self._board = board
        self._clock = clock
        self._duties: tuple[Duty, ...] = ()

    async def run(self, stop: asyncio.Event, say_ready: Callable[[], None]) -> None:
        """Do the duties until `stop` is set. A process that starts while the database is away waits for it."""
        asyncio.get_running_loop().set_default_executor(RoundThreads(THREADS, "round"))
        async with AsyncExitStack() as stack:
            parts = await start_when_available(self._start, stack, stop, self._clock)
            if parts is None:
                return
            self._duties = parts.duties
            say_ready()
            log.info("background duties run", duties=sorted(parts.tasks))
            await run_until(stop, parts.tasks)

    def hangs(self) -> str:
        """The duties of which a round does not end, with their names."""
        return ", ".join(duty.name for duty in self._duties if duty.hangs())

    async def _start(self, stack: AsyncExitStack) -> BackgroundParts:
        return await stack.enter_async_context(build_background(self._project, self._clock, board=self._board))
