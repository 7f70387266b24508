"""The processes of a node: the request worker, and the background process with the periodic tasks.

A process waits while the database is unavailable. It logs a warning if the listen address or the project URL leaves
passwords or cookies unprotected.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from administration.project import Project
from domain.clock import Clock
from domain.errors import MusterError, UnavailableError
from domain.units import Seconds
from runtime.compose import BackgroundParts, WorkerParts, build_background, build_worker
from runtime.metrics.metrics_store import MetricsStore
from runtime.periodic_tasks import PeriodicTask, RoundThreads
from runtime.rate_limits.connections import BoundedSite

RETRY_S = Seconds(1.0)

Parts = TypeVar("Parts")
Start = Callable[[AsyncExitStack], Awaitable[Parts]]

log = structlog.get_logger()


async def start_when_available(
    start: Start[Parts], stack: AsyncExitStack, stop: asyncio.Event, clock: Clock
) -> Parts | None:
    """Return the result of `start`, with its resources entered on `stack`; None if `stop` is set first.

    If the database becomes unavailable during the start, the start is undone and retried every second. Each reason is
    logged once, and so is the end of the wait.
    """
    began_s, reasons = clock.monotonic(), set[str]()
    while not stop.is_set():
        try:
            parts = await _until(stop, _attempt(start, stack))
        except UnavailableError as error:
            why = str(error)
            if why not in reasons:
                reasons.add(why)
                log.warning("waiting for the database", why=why)
        else:
            if parts is not None and reasons:
                log.info("the database is back", waited_s=round(clock.monotonic() - began_s, 1))
            return parts
        await _until(stop, clock.sleep(RETRY_S))
    return None


async def _attempt(start: Start[Parts], stack: AsyncExitStack) -> Parts:
    async with AsyncExitStack() as own:
        parts = await start(own)
        stack.push_async_exit(own.pop_all())
        return parts


Result = TypeVar("Result")


async def _until(stop: asyncio.Event, work: Awaitable[Result]) -> Result | None:
    """Return the result of `work`. If `stop` is set first, cancel `work` and return None."""
    working, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


def exposures(master_url: str, host: str) -> Iterator[str]:
    """Return a warning for each conflict between the project's URL and the listen address.

    >>> list(exposures("https://muster.example.org/", "127.0.0.1")), list(exposures("http://127.0.0.1:8080/", "::1"))
    ([], [])
    >>> next(exposures("http://muster.example.org/", "127.0.0.1"))
    'project.url is http://muster.example.org/: passwords and cookies travel unencrypted; use an https URL'
    """
    url = urlsplit(master_url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield f"project.url is {master_url}: passwords and cookies travel unencrypted; use an https URL"
    if url.scheme == "https" and not is_loopback(host):
        yield (
            f"project.url is {master_url}, but this node serves plain HTTP on {host}: admit only the TLS proxy, "
            "or use --host 127.0.0.1 if the proxy runs on this machine"
        )
    if not is_loopback(url.hostname or "") and url.scheme == "http" and is_loopback(host):
        yield f"project.url is {master_url}, but this node listens on {host}, which other machines cannot reach"


def is_loopback(host: str) -> bool:
    """Return whether the name or address is a loopback address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


SHUTDOWN_S = 10.0  # maximum time for open requests to finish
SHARE_S = 5.0  # maximum time for other workers to release a new worker's share of the shards
LOOK_S = 0.1  # interval of the check


class TaskEndedError(MusterError):
    """A task that should run forever ended."""


class Worker:
    """A request worker. Several share the first of its `ports`; a second one is its own, for a front end."""

    def __init__(
        self,
        project: Project,
        clock: Clock,
        *,
        host: str,
        ports: Sequence[int],
        number: int,
        board: MetricsStore | None = None,
    ) -> None:
        self._project = project
        self._board = board
        self._clock = clock
        self._host = host
        self._ports = ports
        self._number = number

    async def run(self, stop: asyncio.Event, say_ready: Callable[[], None]) -> None:
        """Serve until `stop` is set. If a background loop fails, the worker ends and is restarted.

        If the database is unavailable at the start, the worker waits for it.
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
                runner, self._host, self._ports, most=lambda: parts.catalogue.catalogue().settings.server.connections
            ).start()
            say_ready()
            log.info("worker started", worker=self._number, ports=self._ports)
            if self._number == 0:
                for sentence in exposures(parts.catalogue.catalogue().settings.project.url, self._host):
                    log.warning("insecure or unreachable address", why=sentence)
            await run_until(stop, parts.tasks)

    def hangs(self) -> str:
        """Return "": only the event loop can hang, and then it sends no heartbeats."""
        return ""

    async def _start(self, stack: AsyncExitStack) -> WorkerParts:
        """Return the worker's parts, including its share of the shards. Raises UnavailableError."""
        built = build_worker(self._project, self._clock, board=self._board, name=f"worker {self._number}")
        parts = await stack.enter_async_context(built)
        await take_share(parts, self._clock)
        return parts


def runner_of(parts: WorkerParts, *, idle_timeout_s: float, shutdown_s: float) -> web.AppRunner:
    """Return the server for the worker's application."""
    return web.AppRunner(
        parts.application,
        access_log=None,
        logger=parts.malformed.logger,
        shutdown_timeout=shutdown_s,
        keepalive_timeout=idle_timeout_s,
        tcp_keepalive=False,  # the kernel's first probe would come after two hours
        auto_decompress=False,  # compressed bodies are refused, never decompressed
    )


async def take_share(parts: WorkerParts, clock: Clock) -> None:
    """Wait until the worker has shards, then fill its array. Without shards it would send clients no work.

    Other workers release some within about a second. After 5 s the worker serves without shards: there may be more
    workers than shards, and it can still accept reports. Raises UnavailableError.
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
    """Run the loops until `stop` is set. Raises the exception of a loop that fails."""
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


THREADS = 32  # maximum for all periodic tasks together


class Background:
    """The background process of a node. Each periodic task has its own lock, for the cluster if not shared."""

    def __init__(self, project: Project, clock: Clock, *, board: MetricsStore | None = None) -> None:
        self._project = project
        self._board = board
        self._clock = clock
        self._duties: tuple[PeriodicTask, ...] = ()

    async def run(self, stop: asyncio.Event, say_ready: Callable[[], None]) -> None:
        """Run the periodic tasks until `stop` is set. If the database is unavailable at the start, wait for it."""
        asyncio.get_running_loop().set_default_executor(RoundThreads(THREADS, "round"))
        async with AsyncExitStack() as stack:
            parts = await start_when_available(self._start, stack, stop, self._clock)
            if parts is None:
                return
            self._duties = parts.duties
            say_ready()
            log.info("periodic tasks started", duties=sorted(parts.tasks))
            await run_until(stop, parts.tasks)

    def hangs(self) -> str:
        """Return the names of tasks with a round that does not end."""
        return ", ".join(duty.name for duty in self._duties if duty.hangs())

    async def _start(self, stack: AsyncExitStack) -> BackgroundParts:
        return await stack.enter_async_context(build_background(self._project, self._clock, board=self._board))
