"""The body of an upload request, read piece by piece: a header, then the bytes of a file.

A connection that breaks or falls silent is an expected end, not an error: what came before it is kept.
"""

from __future__ import annotations

import asyncio
import math

from aiohttp import ClientError, StreamReader

from domain.clock import Clock
from domain.formatting import in_words
from wire.errors import ProtocolError
from wire.messages import SizeQuery, UploadHeader
from wire.uploads import decode_upload_head


class RequestBody:
    """Reads at the speed of whoever takes the bytes; never holds more than it was asked for and a chunk.

    What was waited for bytes may come to `idle_timeout_s` at once, and in all to that and a second for every
    `least_bytes_per_s` that came (0: to anything).
    """

    def __init__(
        self, stream: StreamReader, clock: Clock, *, idle_timeout_s: float, least_bytes_per_s: float = 0.0
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._idle_timeout_s = idle_timeout_s
        self._least_bytes_per_s = least_bytes_per_s
        self._came_bytes = 0
        self._waited_s = 0.0
        self._pending = bytearray()
        self.ended = ""  # why no more bytes come; empty while they may

    async def read_head(self) -> SizeQuery | UploadHeader:
        """What the request begins with. Raises ProtocolError, also when the request ends before.

        All of it has to come within the idle time: who sends a byte now and then could hold on for days.
        """
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await self._head()
        except TimeoutError:
            raise ProtocolError(
                f"upload request: expected a whole header, none came in {in_words(self._idle_timeout_s)}", 408
            ) from None

    async def _head(self) -> SizeQuery | UploadHeader:
        while True:
            start = decode_upload_head(bytes(self._pending))
            if start is not None:
                del self._pending[: start.payload_at]
                return start.message
            if self.ended:
                raise ProtocolError(f"upload request: expected a whole header, got {len(self._pending)} bytes")
            await self._fill()

    async def read(self, nbytes: int) -> bytes:
        """The next `nbytes` bytes; fewer when no more come, and `ended` says why."""
        while len(self._pending) < nbytes and not self.ended:
            await self._fill()
        chunk = bytes(self._pending[:nbytes])
        del self._pending[:nbytes]
        return chunk

    def arrived(self) -> bytes:
        """What has come and was not read yet."""
        return bytes(self._pending)

    async def skip(self, nbytes: int) -> None:
        """Read on without keeping anything, so that the client is not cut off before it hears the answer."""
        nbytes -= len(self._pending)
        self._pending.clear()
        while nbytes > 0 and not self.ended:
            await self._fill()
            nbytes -= len(self._pending)
            self._pending.clear()

    def _patience_s(self) -> float:
        """How much longer bytes are waited for in all."""
        if not self._least_bytes_per_s:
            return math.inf
        return self._idle_timeout_s + self._came_bytes / self._least_bytes_per_s - self._waited_s

    async def _fill(self) -> None:
        patience_s = self._patience_s()
        too_slow = f"less than {self._least_bytes_per_s:g} bytes came a second"
        if patience_s <= 0:
            self.ended = too_slow
            return
        began_s = self._clock.monotonic()
        try:
            async with asyncio.timeout(min(self._idle_timeout_s, patience_s)):
                chunk = await self._stream.readany()
        except TimeoutError:
            silent = patience_s >= self._idle_timeout_s
            self.ended = f"nothing came for {in_words(self._idle_timeout_s)}" if silent else too_slow
        except (ConnectionError, ClientError) as error:
            self.ended = f"the connection broke ({type(error).__name__})"
        else:
            self._pending += chunk
            self._came_bytes += len(chunk)
            self._waited_s += self._clock.monotonic() - began_s
            if not chunk:
                self.ended = "the request ended"
