"""The port of a worker: it holds a limited number of connections, and tells further ones to come later."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from math import ceil
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
        self._there: dict[web.RequestHandler, None] = {}  # in the order in which they came
        self._leaving: set[web.RequestHandler] = set()  # closed when their request is answered
        self.refused = 0

    @property
    def name(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        self._hear_of_those_who_go()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.protocol, self._host, self._port, reuse_port=True, backlog=BACKLOG)

    def protocol(self) -> asyncio.Protocol:
        """Who speaks with the next connection."""
        server = self._runner.server
        assert server is not None
        most = min(self._most(), self._room)
        if self._held() >= MANY * most:
            self._let_go_of(self._held() - ceil(MANY * most) + 1)
        if self._held() < most:
            made = server()
            self._there[made] = None
            return cast(asyncio.Protocol, made)
        if self.refused % LOG_EVERY == 0:
            log.warning("too many connections", held=self._held(), refused=self.refused + 1)
        self.refused += 1
        return ConnectionsInUse()

    def _held(self) -> int:
        """Those whose connection is only being made count, those that were let go do not: many may come at once."""
        return len(self._there) + len(self._leaving)

    def _hear_of_those_who_go(self) -> None:
        server = self._runner.server
        assert server is not None
        tell = server.connection_lost

        def lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
            self._there.pop(handler, None)
            self._leaving.discard(handler)
            tell(handler, exc)

        server.connection_lost = lost  # type: ignore[method-assign]  # there is no other way to hear of it

    def _let_go_of(self, surplus: int) -> None:
        """So many that are idle, the oldest first; of those with a request under way one, when it is answered.

        What is only being set up cannot be closed yet.
        """
        chosen: list[web.RequestHandler] = []
        for one in self._there:
            # What it waits for says whether a request is under way; nothing public does.
            if one.transport is None:
                continue
            waiter = one._waiter  # noqa: SLF001
            if waiter is not None and not waiter.done():  # when it is done a request has just come
                chosen.append(one)
            elif one._request_in_progress and self._leaving.isdisjoint(chosen):  # noqa: SLF001
                self._leaving.add(one)
                chosen.append(one)
            if len(chosen) >= surplus:
                break
        for one in chosen:
            del self._there[one]
            (one.close if one in self._leaving else one.force_close)()


class ConnectionsInUse(asyncio.Protocol):
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
