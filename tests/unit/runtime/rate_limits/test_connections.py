"""A worker limits its connections: further ones are refused and closed, and later ones are accepted again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from runtime.rate_limits.connections import BoundedSite
from tests.ports import free_port

ASKED = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Slow:
    """Requests that stay open until released."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.going_on = asyncio.Event()


@asynccontextmanager
async def serving(
    most: int,
    *,
    idle_s: float = 60.0,
    slow: Slow | None = None,
    bound: Callable[[], int] | None = None,
    also: Sequence[int] = (),
) -> AsyncIterator[tuple[BoundedSite, int]]:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def wait(request: web.Request) -> web.Response:
        assert slow is not None
        slow.begun.release()
        await slow.going_on.wait()
        return web.Response(text="slow")

    application = web.Application()
    application.router.add_get("/slow", wait)
    application.router.add_get("/", hello)
    runner = web.AppRunner(application, access_log=None, keepalive_timeout=idle_s, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    site = BoundedSite(runner, "127.0.0.1", [port, *also], most=bound or (lambda: most))
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
    """All other connections have open requests, so none can be closed."""
    slow = Slow()
    async with serving(most=50, slow=slow) as (site, port):
        held = []
        for _ in range(50):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            await slow.begun.acquire()
            held.append((reader, writer))

        refused, writer = await asked(port)
        writer.close()
        slow.going_on.set()
        answers = [await asyncio.wait_for(reader.readline(), 30) for reader, _ in held]
        for _, writer in held:
            writer.close()
        for _ in range(100):  # until the server has noticed
            again, writer = await asked(port)
            writer.close()
            if again == b"HTTP/1.1 200 OK":
                break

        assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}
        assert refused == b"HTTP/1.1 503 Service Unavailable"
        assert again == b"HTTP/1.1 200 OK"
        assert site.refused >= 1


async def test_ports_of_a_worker_share_its_limit() -> None:
    """A connection to the second port closes the oldest idle one of the first."""
    own = free_port()
    async with serving(most=10, also=[own]) as (_, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(9)]

        answers = [await asked(own) for _ in range(3)]

        assert {status for status, _ in answers} == {b"HTTP/1.1 200 OK"}
        assert await asyncio.wait_for(silent[0][0].read(), 30) == b""
        for _, writer in (*silent, *answers):
            writer.close()


async def test_who_sends_its_headers_byte_by_byte_is_cut_off() -> None:
    async with serving(most=10, idle_s=0.3) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


async def test_idle_connections_do_not_block_others() -> None:
    async with serving(most=200, idle_s=0.3) as (_, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        for reader, writer in silent:
            await asyncio.wait_for(reader.read(), 30)  # refused or closed
            writer.close()

        status, writer = await asked(port)

        writer.close()
        assert status == b"HTTP/1.1 200 OK"


async def test_connections_that_only_stay_there_make_room_for_who_asks() -> None:
    """Independent of the keep-alive timeout: here a minute, as in production."""
    async with serving(most=20) as (site, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(17)]
        kept = [await asked(port) for _ in range(10)]
        silent += [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]

        answers = [await asked(port) for _ in range(30)]

        assert {status for status, _ in (*kept, *answers)} == {b"HTTP/1.1 200 OK"}
        assert await asyncio.wait_for(silent[0][0].read(), 30) == b""
        assert site.refused == 0
        for _, writer in (*silent, *kept, *answers):
            writer.close()


async def test_connections_that_come_all_at_once_make_room_too() -> None:
    """More connections than the limit arrive at once, half of them with a begun request."""
    async with serving(most=40) as (_, port):
        silent = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(300)))
        for _, writer in silent[::2]:
            writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")

        answers = [await asked(port) for _ in range(60)]

        assert {status for status, _ in answers} == {b"HTTP/1.1 200 OK"}
        for _, writer in (*silent, *answers):
            writer.close()


async def test_a_bound_that_is_lowered_holds_at_once() -> None:
    bound = 200
    async with serving(most=200, bound=lambda: bound) as (_, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(150)]
        [(first, writer)] = [await asked(port)]
        bound = 20

        answers = [await asked(port) for _ in range(3)]

        assert {status for status, _ in answers} == {b"HTTP/1.1 200 OK"}
        for reader, _ in silent[:130]:
            assert await asyncio.wait_for(reader.read(), 30) == b""
        assert first == b"HTTP/1.1 200 OK"
        for _, one in (*silent, *answers):
            one.close()
        writer.close()


async def test_open_request_on_oldest_connection_is_answered() -> None:
    slow = Slow()
    async with serving(most=10, slow=slow) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await slow.begun.acquire()
        others = [await asked(port) for _ in range(30)]
        slow.going_on.set()

        answer = await asyncio.wait_for(reader.read(), 30)

        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"slow")
        for _, other in others:
            other.close()
        writer.close()
