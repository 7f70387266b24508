"""A network link that loses connections, is slow, and duplicates requests."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.faults.proxy import Proxy
from tests.faults.waiting import CLOCK

MOST_BYTES = 65536  # of a duplicated request
ANSWER_S = 5.0  # the second reply is read for this long, and discarded


class Link(Proxy):
    """A proxy that can be slow, and duplicates the first request of each connection to HTTP servers."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.doubles = False
        self.doubled = 0
        self._copies: set[asyncio.Task[None]] = set()

    def lead_to(self, port: int) -> None:
        """Direct new connections to another server on this machine."""
        self._server_port = port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # end of an interrupted run
            await super()._serve(reader, writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = True
        with suppress(OSError):
            while piece := await reader.read(MOST_BYTES):
                await self._flows.wait()
                if self.delay_s:
                    await CLOCK.sleep(self.delay_s)
                if first and self.doubles and piece.startswith(b"POST "):
                    copy = asyncio.create_task(self._bring_again(piece))
                    self._copies.add(copy)
                    copy.add_done_callback(self._copies.discard)
                first = False
                writer.write(piece)
                await writer.drain()
            await self._flows.wait()

    async def _bring_again(self, piece: bytes) -> None:
        """Send the same bytes, as received at first, over a connection of their own."""
        with suppress(OSError, TimeoutError):
            reader, writer = await self._connect()
            try:
                writer.write(piece)
                await writer.drain()
                self.doubled += 1
                await asyncio.wait_for(reader.read(MOST_BYTES), ANSWER_S)
            finally:
                writer.transport.abort()

    async def end(self) -> None:
        """Refuse and break all connections permanently."""
        self.thaw()
        self.cut()
        for copy in list(self._copies):
            copy.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)
