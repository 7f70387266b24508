"""Starts the parts of a process, and waits for the database while it is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Seconds

RETRY_S = Seconds(1.0)

Parts = TypeVar("Parts")
Start = Callable[[AsyncExitStack], Awaitable[Parts]]

log = structlog.get_logger()


async def start_when_available(
    start: Start[Parts], stack: AsyncExitStack, stop: asyncio.Event, clock: Clock
) -> Parts | None:
    """Return what `start` makes, its resources entered on `stack`; None if `stop` is set before.

    A start during which the database goes away is undone and repeated every second until it succeeds. Each reason is
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
    """What `work` comes to; None if `stop` is set first, with `work` cancelled."""
    working, stopping = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
