"""Limits the connections of a worker; further clients get 503 with Retry-After."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Sequence
from math import ceil
from typing import cast

import structlog
from aiohttp import web

OTHER_FILES = 256  # reserved for the database, logs, and files being served
GOODBYE_S = 1.0  # time for the client to read the refusal before the connection is closed
BACKLOG = 1024
LOG_EVERY = 1000
MANY = 0.9  # fraction of the limit

_TEXT = b"this server has reached its limit of connections: try again in a minute\n"
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 60\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)
)

log = structlog.get_logger()


class BoundedSite(web.BaseSite):
    """Serves an application on ports that other workers may share, with at most `most()` connections together."""

    def __init__(self, runner: web.AppRunner, host: str, ports: Sequence[int], *, most: Callable[[], int]) -> None:
        super().__init__(runner)
        self._host = host
        self._ports = ports
        self._most = most
        self._servers: list[asyncio.Server] = []
        self._room = files_at_most() - OTHER_FILES
        self._there: dict[web.RequestHandler, None] = {}  # in order of arrival
        self._leaving: set[web.RequestHandler] = set()  # will be closed after their current response
        self.refused = 0

    @property
    def name(self) -> str:
        return f"http://{self._host}:{self._ports[0]}"

    async def start(self) -> None:
        await super().start()
        self._hear_of_those_who_go()
        loop = asyncio.get_running_loop()
        for port in self._ports:
            self._servers.append(
                await loop.create_server(self.protocol, self._host, port, reuse_port=True, backlog=BACKLOG)
            )

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        await super().stop()

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol for the next connection."""
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
        """Return the number of connections that count: from the start of their set-up, except those being closed."""
        return len(self._there) + len(self._leaving)

    def _hear_of_those_who_go(self) -> None:
        server = self._runner.server
        assert server is not None
        tell = server.connection_lost

        def lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
            self._there.pop(handler, None)
            self._leaving.discard(handler)
            tell(handler, exc)

        server.connection_lost = lost  # type: ignore[method-assign]  # there is no other way to be notified

    def _let_go_of(self, surplus: int) -> None:
        """Close `surplus` connections that are idle, oldest first, or one with an open request after its response.

        A connection that is being set up cannot be closed.
        """
        chosen: list[web.RequestHandler] = []
        for one in self._there:
            # The private waiter shows whether a request is open; no public attribute does.
            if one.transport is None:
                continue
            waiter = one._waiter  # noqa: SLF001
            if waiter is not None and not waiter.done():  # done: a request has just arrived
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
    """Refuses every request because there are too many connections, then closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(BUSY)
        # Closing immediately, with the request unread, could lose the response.
        asyncio.get_running_loop().call_later(GOODBYE_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._transport.close()


def files_at_most() -> int:
    """Raise the process's limit on open files to its maximum and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**20
