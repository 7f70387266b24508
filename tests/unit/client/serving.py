"""A server in a separate thread, for tests of the blocking client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

from api.table import reply


@dataclass(slots=True)
class Served:
    """Counters of the server. `hangs` is set while a request waits that never ends."""

    url: str = ""
    hangs: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    connections: set[tuple[str, int]] = field(default_factory=set)
    put: dict[str, bytes] = field(default_factory=dict)

    async def batch(self, request: web.Request) -> web.StreamResponse:
        """Reply for batch 7, never for batch 8."""
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername"))
        if request.match_info["id"] == "8":
            await self._hang()
        return reply({"batch_id": int(request.match_info["id"])})

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Batch 7 ends after two events, batch 8 never."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'event: progress\ndata: {"unsent":1}\n\nevent: progress\ndata: {"unsent":0}\n\n')
        if request.match_info["id"] == "8":
            await self._hang()
        await response.write(b"event: end\ndata: {}\n\n")
        return response

    async def file(self, request: web.Request) -> web.StreamResponse:
        self.put[request.match_info["name"]] = await request.read()
        return reply({"name": request.match_info["name"], "nbytes": 5, "md5": ""})

    async def output(self, request: web.Request) -> web.StreamResponse:
        """The output `endless` stops half-way."""
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"output")
        if request.match_info["name"] == "endless":
            await self._hang()
        return response

    async def _hang(self) -> None:
        self.hangs.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


@asynccontextmanager
async def _served(served: Served) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/api/v1/batches/{id}", served.batch)
    app.router.add_get("/api/v1/batches/{id}/events", served.events)
    app.router.add_put("/api/v1/files/{name}", served.file)
    app.router.add_get("/api/v1/jobs/7/outputs/{name}", served.output)
    async with TestServer(app, handler_cancellation=True) as server:
        served.url = str(server.make_url("/"))
        yield


@contextmanager
def serving() -> Iterator[Served]:
    """A server that runs until the context ends."""
    served, ready = Served(), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def whole() -> None:
        async with _served(served):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(whole()), name="serving")
    thread.start()
    try:
        assert ready.wait(10)
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
