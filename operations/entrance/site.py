"""The port of a worker: holds so many connections, and tells the others politely to come later.

When they become many, each new one has the one that is there longest closed, at once where it says nothing, else after
its request: who only holds connections keeps nobody out.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from collections.abc import Callable
from typing import cast

import structlog
from aiohttp import web

OTHER_FILES = 256  # the database's, logs, files that are served
GOODBYE_S = 1.0  # who was told is cut off after that
BACKLOG = 1024
LOG_EVERY = 1000
MANY = 0.9  # of the connections it may hold

_TEXT = b"this server holds as many connections as it can: try again in a minute\n"
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 60\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)
)

log = structlog.get_logger()


class BoundedSite(web.BaseSite):
    """Serves a runner's application on a port that other workers share. `most()` connections at a time."""

    def __init__(self, runner: web.AppRunner, host: str, port: int, *, most: Callable[[], int]) -> None:
        super().__init__(runner)
        self._host = host
        self._port = port
        self._most = most
        self._room = files_at_most() - OTHER_FILES
        self._there: deque[web.RequestHandler] = deque()  # since when, in order; those that are gone too, for a while
        self.refused = 0

    @property
    def name(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.protocol, self._host, self._port, reuse_port=True, backlog=BACKLOG)

    def protocol(self) -> asyncio.Protocol:
        """Who speaks with the next connection."""
        server = self._runner.server
        assert server is not None
        most, held = min(self._most(), self._room), len(server.connections)
        if held >= MANY * most:
            self._let_go_of_the_oldest()
        if held < most:
            made = server()
            self._there.append(made)
            if len(self._there) > 2 * most:
                self._there = deque(one for one in self._there if one.transport is not None)
            return cast(asyncio.Protocol, made)
        if self.refused % LOG_EVERY == 0:
            log.warning("too many connections", held=len(server.connections), refused=self.refused + 1)
        self.refused += 1
        return Busy()

    def _let_go_of_the_oldest(self) -> None:
        """Of those that were not told so before."""
        while self._there:
            oldest = self._there.popleft()
            if oldest.transport is not None:
                # What it waits for says whether a request is under way; nothing public does.
                under_way = oldest._waiter is None  # noqa: SLF001
                (oldest.close if under_way else oldest.force_close)()
                return


class Busy(asyncio.Protocol):
    """Says that there is no room, whatever it is asked, and hangs up."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(BUSY)
        # Closed at once, with a request unread, the answer might be lost.
        asyncio.get_running_loop().call_later(GOODBYE_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._transport.close()


def files_at_most() -> int:
    """How many files and connections the process may have open: as many as it is allowed to ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**20
