"""A worker holds so many connections; the next is told to come later and let go, and there is room again afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from operations.entrance.site import BoundedSite
from tests.e2e.stock_client import free_port

ASKED = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@asynccontextmanager
async def serving(most: int, *, idle_s: float = 60.0) -> AsyncIterator[tuple[BoundedSite, int]]:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", hello)
    runner = web.AppRunner(application, access_log=None, keepalive_timeout=idle_s, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    site = BoundedSite(runner, "127.0.0.1", port, most=lambda: most)
    await site.start()
    try:
        yield site, port
    finally:
        await runner.cleanup()


async def asked(port: int) -> tuple[bytes, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASKED)
    return (await asyncio.wait_for(reader.readline(), 30)).strip(), writer


async def test_the_connection_too_many_is_answered_and_closed() -> None:
    async with serving(most=50) as (site, port):
        held = [await asked(port) for _ in range(50)]

        refused, writer = await asked(port)
        writer.close()
        held[0][1].close()
        await held[0][1].wait_closed()
        for _ in range(100):  # until the server has seen it go
            again, writer = await asked(port)
            writer.close()
            if again == b"HTTP/1.1 200 OK":
                break

        assert {status for status, _ in held} == {b"HTTP/1.1 200 OK"}
        assert refused == b"HTTP/1.1 503 Service Unavailable"
        assert again == b"HTTP/1.1 200 OK"
        assert site.refused >= 1
        for _, writer in held[1:]:
            writer.close()


async def test_who_sends_its_headers_byte_by_byte_is_cut_off() -> None:
    async with serving(most=10, idle_s=0.3) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


async def test_many_connections_that_say_nothing_do_not_keep_others_out_for_long() -> None:
    async with serving(most=200, idle_s=0.3) as (_, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        for reader, writer in silent:
            await asyncio.wait_for(reader.read(), 30)  # told that there is no room, or cut off
            writer.close()

        status, writer = await asked(port)

        writer.close()
        assert status == b"HTTP/1.1 200 OK"
