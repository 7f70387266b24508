"""Server-sent events: how far a batch, or the project, is."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from api.batches import BatchParams
from api.progress import Listener, ProgressHub
from api.table import Ask, NoParams, Route
from domain.clock import Clock
from domain.units import BatchId

TAG = "progress"
HEARTBEAT_S = 15.0  # a proxy or a client that hears nothing for a minute hangs up
MOST_S = 3600.0  # then the client comes again, and has to be allowed to
RETRY_MS = 3000
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx passes each event on at once
}


class EventsApi:
    def __init__(self, hub: ProgressHub, clock: Clock) -> None:
        self._hub = hub
        self._clock = clock

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "GET",
                "/batches/{batch_id}/events",
                "batch_events",
                "Events `progress` at most once a second while it changes, and `end` when the batch has ended.",
                self.batch,
                TAG,
                None,
                BatchParams,
                errors=(404,),
            ),
            Route(
                "GET",
                "/events",
                "events",
                "Events `progress` of all active batches together, at most once a second.",
                self.project,
                TAG,
                None,
                NoParams,
            ),
        ]

    async def batch(self, ask: Ask[BatchParams, None]) -> web.StreamResponse:
        return await self._stream(ask.request, BatchId(ask.params.batch_id))

    async def project(self, ask: Ask[NoParams, None]) -> web.StreamResponse:
        return await self._stream(ask.request, None)

    async def _stream(self, request: web.Request, topic: BatchId | None) -> web.StreamResponse:
        async with self._hub.listen(topic) as listener:
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            try:
                await response.write(f"retry: {RETRY_MS}\n\n".encode())
                await self._write(response, listener)
                await response.write_eof()
            except ConnectionResetError:
                pass  # whoever listened has gone
        return response

    async def _write(self, response: web.StreamResponse, listener: Listener) -> None:
        until_s = self._clock.monotonic() + MOST_S
        number = 0
        while self._clock.monotonic() < until_s:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await listener.changed.wait()
            except TimeoutError:
                await response.write(b": still here\n\n")
                continue
            listener.changed.clear()
            if listener.closed or listener.latest is None:
                return
            number += 1
            await response.write(encoded("progress", number, listener.latest))
            if listener.latest.get("ended_at") is not None:
                await response.write(encoded("end", number + 1, {"batch_id": listener.topic}))
                return


def encoded(name: str, number: int, data: object) -> bytes:
    """One event as it is sent.

    >>> encoded("end", 2, {"batch_id": 7})
    b'id: 2\\nevent: end\\ndata: {"batch_id":7}\\n\\n'
    """
    return f"id: {number}\nevent: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
