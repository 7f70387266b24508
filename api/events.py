"""Server-sent events: the progress of one batch or of the whole project.

One query per second serves all listeners; without listeners, nothing is queried. The query reads stored counters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec
import structlog
from aiohttp import web

from administration.show import shown
from api.batches import BatchParams
from api.table import Ask, NoParams, operation
from domain.clock import Clock
from domain.errors import NotFoundError, UnavailableError
from domain.units import BatchId
from domain.views import ActiveTotal
from muster_client import shapes
from store.views import PostgresListings, PostgresViews
from web.problems import BusyError

EVERY_S = 1.0

Event = Mapping[str, object]
PROJECT = None  # the topic of the whole project; other topics are batch ids

log = structlog.get_logger()


class Listener:
    """One event stream. A slow reader gets only the latest state."""

    def __init__(self, topic: BatchId | None) -> None:
        self.topic = topic
        self.latest: Event | None = None
        self.changed = asyncio.Event()
        self.closed = False

    def tell(self, event: Event) -> None:
        if event != self.latest:
            self.latest = event
            self.changed.set()

    def close(self) -> None:
        self.closed = True
        self.changed.set()


class ProgressHub:
    """All event streams of one process."""

    def __init__(self, views: PostgresViews, listings: PostgresListings, clock: Clock, most: Callable[[], int]) -> None:
        self._views = views
        self._listings = listings
        self._clock = clock
        self._most = most
        self._listeners: set[Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def listening(self) -> int:
        return len(self._listeners)

    @asynccontextmanager
    async def listen(self, topic: BatchId | None) -> AsyncIterator[Listener]:
        """Yield a listener that already has its first event. Raises NotFoundError, or BusyError (too many streams)."""
        if self._closed or len(self._listeners) >= self._most():
            raise BusyError(f"this worker already serves {len(self._listeners)} streams: retry in a few seconds")
        listener = Listener(topic)
        self._listeners.add(listener)
        try:
            await self._tell([listener])
            if listener.latest is None:
                raise NotFoundError("batch", topic)
            if self._looking is None:
                self._looking = asyncio.create_task(self._look(), name="progress")
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def close(self) -> None:
        """End all streams."""
        self._closed = True
        for listener in self._listeners:
            listener.close()
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None

    async def _look(self) -> None:
        while True:
            await self._clock.sleep(EVERY_S)
            try:
                await self._tell(list(self._listeners))
            except UnavailableError as error:
                log.warning("progress read failed", why=str(error))

    async def _tell(self, listeners: Sequence[Listener]) -> None:
        ids = sorted({one.topic for one in listeners if one.topic is not None})
        found: dict[BatchId | None, Event] = {}
        if ids:
            batches = await self._views.batches_with(ids)
            found |= {one.batch_id: shown(shapes.ProgressShown, one, one.counts) for one in batches}
        if len(ids) < len({one.topic for one in listeners}):
            found[PROJECT] = project_event(await self._listings.totals())
        for listener in listeners:
            if (event := found.get(listener.topic)) is not None:
                listener.tell(event)


def project_event(totals: Sequence[ActiveTotal]) -> Event:
    """Return the project's progress event, with totals and with parts by app and quality of service. Pure."""
    names = ("jobs_total", "jobs_validated", "jobs_failed", "unsent", "in_progress", "sent", "deadlines_missed")
    rows = [
        {"app": one.app, "qos": one.qos.value, "batches": one.batches, **{name: getattr(one, name) for name in names}}
        for one in totals
    ]
    summed = {name: sum(getattr(one, name) for one in totals) for name in names}
    return {"active_batches": sum(one.batches for one in totals), **summed, "parts": rows}


HEARTBEAT_S = 15.0  # proxies and clients drop connections that are silent for about a minute
MOST_S = 3600.0  # after this time the client must reconnect, and its token is checked again
RETRY_MS = 3000
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # prevents nginx from buffering events
}


class EventsApi:
    TAG = "progress"

    def __init__(self, hub: ProgressHub, clock: Clock) -> None:
        self._hub = hub
        self._clock = clock

    @operation(
        "GET",
        "/batches/{batch_id}/events",
        "A stream of `progress` events, at most one a second, on change; `end` when the batch has ended.",
        reply=None,
        errors=(404,),
    )
    async def batch_events(self, ask: Ask[BatchParams, None]) -> web.StreamResponse:
        return await self._stream(ask.request, BatchId(ask.params.batch_id))

    @operation(
        "GET", "/events", "`progress` events with the totals of active batches, at most one a second.", reply=None
    )
    async def events(self, ask: Ask[NoParams, None]) -> web.StreamResponse:
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
                pass  # the client disconnected
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
    """Return an event in wire format.

    >>> encoded("end", 2, {"batch_id": 7})
    b'id: 2\\nevent: end\\ndata: {"batch_id":7}\\n\\n'
    """
    return f"id: {number}\nevent: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
