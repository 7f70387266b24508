"""The port of a worker: holds so many connections, and tells the others politely to come later."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import cast

import structlog
from aiohttp import web

OTHER_FILES = 256  # the database's, logs, files that are served
GOODBYE_S = 1.0  # who was told is cut off after that
BACKLOG = 1024
LOG_EVERY = 1000

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
        if len(server.connections) < min(self._most(), self._room):
            return cast(asyncio.Protocol, server())
        if self.refused % LOG_EVERY == 0:
            log.warning("too many connections", held=len(server.connections), refused=self.refused + 1)
        self.refused += 1
        return Busy()


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
