"""A TCP proxy between a node and its database or file store that can be cut, frozen and slowed down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

from domain.clock import SystemClock
from tests.ports import free_port

PIECE_BYTES = 65536


class Proxy:
    """Forwards to one server, given by its DSN or URL."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        self._folder = parse_qs(parts.query).get("host", [""])[0]
        self._server_port = int(parse_qs(parts.query).get("port", [str(parts.port or 5432)])[0])
        self._host = parts.hostname or "127.0.0.1"
        self.port = free_port()
        self.delay_s = 0.0  # of each piece
        user = f"{parts.username or 'postgres'}{':' + parts.password if parts.password else ''}"
        self.dsn = f"postgresql://{user}@127.0.0.1:{self.port}{parts.path}"
        self._listener: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        """Accept connections, and forward."""
        self._flows.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in list(self._open):
            writer.transport.abort()

    def freeze(self) -> None:
        """Accept connections and their data, and forward nothing."""
        self._flows.clear()

    def thaw(self) -> None:
        """Forward again, including held data."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        server_writer: asyncio.StreamWriter | None = None
        try:
            await self._flows.wait()
            server_reader, server_writer = await self._connect()
            self._open.add(server_writer)
            ends = [
                asyncio.create_task(self._forward(reader, server_writer)),
                asyncio.create_task(self._forward(server_reader, writer)),
            ]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        except OSError:
            pass  # the server closed, so close this connection too
        finally:
            for end_of in (writer, server_writer):
                if end_of is not None:
                    self._open.discard(end_of)
                    end_of.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._folder:
            return await asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.{self._server_port}")
        return await asyncio.open_connection(self._host, self._server_port)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                await self._flows.wait()
                if self.delay_s:
                    await SystemClock().sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()
            await self._flows.wait()


@asynccontextmanager
async def proxied(dsn: str) -> AsyncIterator[Proxy]:
    """Run a proxy in front of the server of that DSN."""
    proxy = Proxy(dsn)
    await proxy.listen()
    try:
        yield proxy
    finally:
        proxy.thaw()
        proxy.cut()
