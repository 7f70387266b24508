"""A request worker: answers clients, and keeps its job array filled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack

import structlog
from aiohttp import web

from administration.project import Project
from domain.clock import Clock
from domain.errors import MusterError
from runtime.compose import WorkerParts, build_worker
from runtime.exposure import exposures
from runtime.metrics.board import Board
from runtime.rate_limits.site import BoundedSite
from runtime.starting import start_when_available

SHUTDOWN_S = 10.0  # requests under way have this long to end
SHARE_S = 5.0  # a new worker waits so long for the others to give it its share of the shards
LOOK_S = 0.1  # how often it looks

log = structlog.get_logger()


class TaskEndedError(MusterError):
    """A task that runs for ever ended."""


class Worker:
    """One process that clients talk to. Several share a port."""

    def __init__(
        self, project: Project, clock: Clock, *, host: str, port: int, number: int, board: Board | None = None
    ) -> None:
        self._project = project
        self._board = board
        self._clock = clock
        self._host = host
        self._port = port
        self._number = number

    async def run(self, stop: asyncio.Event, say_ready: Callable[[], None]) -> None:
        """Serve until `stop` is set. A background task that breaks ends the worker, and it is restarted.

        A worker that starts while the database is away waits for it.
        """
        async with AsyncExitStack() as stack:
            parts = await start_when_available(self._start, stack, stop, self._clock)
            if parts is None:
                return
            settings = parts.catalogue.catalogue().settings.server
            runner = runner_of(parts, idle_timeout_s=settings.idle_timeout_s, shutdown_s=SHUTDOWN_S)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await BoundedSite(
                runner, self._host, self._port, most=lambda: parts.catalogue.catalogue().settings.server.connections
            ).start()
            say_ready()
            log.info("worker serves", worker=self._number, port=self._port)
            if self._number == 0:
                for sentence in exposures(parts.catalogue.catalogue().settings.project.url, self._host):
                    log.warning("exposed", why=sentence)
            await run_until(stop, parts.tasks)

    def hangs(self) -> str:
        """Nothing but the event loop, which sends the heartbeats itself."""
        return ""

    async def _start(self, stack: AsyncExitStack) -> WorkerParts:
        """The worker's parts, with its share of the shards. Raises UnavailableError."""
        built = build_worker(self._project, self._clock, board=self._board, name=f"worker {self._number}")
        parts = await stack.enter_async_context(built)
        await take_share(parts, self._clock)
        return parts


def runner_of(parts: WorkerParts, *, idle_timeout_s: float, shutdown_s: float) -> web.AppRunner:
    """What serves the worker's application."""
    return web.AppRunner(
        parts.application,
        access_log=None,
        logger=parts.malformed.logger,
        shutdown_timeout=shutdown_s,
        keepalive_timeout=idle_timeout_s,
        auto_decompress=False,  # a body that is packed is refused, never blown up
    )


async def take_share(parts: WorkerParts, clock: Clock) -> None:
    """Wait until the worker has shards, and feed it: before that it would tell clients that there is no work.

    The others give some up within a second or so. It serves without any after 5 s: there may be more workers than
    shards, and it can still take reports. Raises UnavailableError.
    """
    until_s = clock.monotonic() + SHARE_S
    waited = False
    while not parts.shards.owned() and clock.monotonic() < until_s:
        waited = True
        await clock.sleep(LOOK_S)
        await parts.shards.run_once()
    if waited:
        await parts.feeder.refill_once()


async def run_until(stop: asyncio.Event, loops: dict[str, Callable[[], Coroutine[None, None, None]]]) -> None:
    """Run the loops until `stop` is set; raise what breaks one of them."""
    tasks = {asyncio.create_task(loop(), name=name) for name, loop in loops.items()}
    waiter = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({waiter, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (waiter, *tasks):
            task.cancel()
        await asyncio.gather(waiter, *tasks, return_exceptions=True)
    for task in done - {waiter}:
        error = task.exception()
        raise error if error is not None else TaskEndedError(f"{task.get_name()} ended")
