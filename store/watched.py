"""A connection for session locks, which others take over when their holder dies, or falls silent.

Keep-alive ends the locks of a machine that is gone (store.sessions). A process that is stopped, or cut off behind
something that still answers for it, keeps its connection; the server ends that when nothing was asked for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from domain.clock import SystemClock
from domain.errors import UnavailableError
from store.pool import lost_means_unavailable
from store.sessions import ShortSession, open_session, probe

__all__ = ["CLOCK", "DEAD_S", "KEEP_S", "WatchedConnection", "connect_watched", "kept_heard", "probe"]

CLOCK = SystemClock()  # the server waits in real time, whatever clock a test has
COMMAND_TIMEOUT_S = 5.0
DEAD_S = 30.0  # after this the server gives the locks of a process that has stopped asking to others
KEEP_S = 5.0  # how often a process that has nothing to ask asks all the same


class WatchedConnection(ShortSession):
    """Made by `connect_watched`."""


async def connect_watched(dsn: str, *, silence_s: float | None = None) -> WatchedConnection:
    """A connection that both kernels probe; each command has 5 s. Raises UnavailableError.

    The server ends it after `silence_s` seconds without a command.
    """
    settings = {} if silence_s is None else {"idle_session_timeout": f"{silence_s * 1000:.0f}"}
    with lost_means_unavailable():
        return await open_session(dsn, WatchedConnection, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)


@asynccontextmanager
async def kept_heard(ask: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Inside, `ask` asks something on a connection every 5 s, until it raises UnavailableError."""

    async def keep() -> None:
        with suppress(UnavailableError):
            while True:
                await CLOCK.sleep(KEEP_S)
                await ask()

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
