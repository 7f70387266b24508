"""Tests that mail needs a server and a sender, and that a failure is an error of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from administration.mail import AT_ONCE, Mailer, MailError
from domain.settings import MailSettings
from tests.ports import free_port


def a_mailer(**settings: object) -> Mailer:
    return Mailer(lambda: MailSettings(**settings))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [({}, False), ({"server": "127.0.0.1"}, False), ({"server": "127.0.0.1", "sender": "project@example.org"}, True)],
)
async def test_mail_needs_a_server_and_a_sender(settings: dict[str, object], is_on: bool) -> None:
    assert a_mailer(**settings).is_on == is_on


async def test_silent_server_is_a_mail_error() -> None:
    mailer = a_mailer(server="127.0.0.1", port=free_port(), sender="project@example.org", tls="none")

    with pytest.raises(MailError):
        await mailer.send("ada@example.org", "Hello", "text")


async def test_header_injection_is_refused() -> None:
    with pytest.raises(ValueError, match="linefeed"):
        await a_mailer(server="127.0.0.1", sender="project@example.org").send("a@b\nBcc: c@d", "Hello", "text")


@asynccontextmanager
async def a_server(greeting: bytes) -> AsyncIterator[tuple[Mailer, list[asyncio.StreamWriter], asyncio.Semaphore]]:
    """Run a server that repeats its greeting; yield a mailer, the connections and a semaphore of new ones."""
    opened, accepted = list[asyncio.StreamWriter](), asyncio.Semaphore(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        accepted.release()
        with suppress(ConnectionError):
            while greeting:
                writer.write(greeting)
                await writer.drain()
            await reader.read()
        writer.close()

    port = free_port()
    settings = MailSettings(server="127.0.0.1", port=port, sender="project@example.org", tls="none")
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield Mailer(lambda: settings, limit_s=0.3 if greeting else 25.0), opened, accepted
        for one in opened:
            one.close()


async def test_endless_greeting_ends_at_the_limit() -> None:
    async with a_server(b"220-hello\r\n") as (mailer, _, _), asyncio.timeout(5.0):
        with pytest.raises(MailError):
            await mailer.send("ada@example.org", "Hello", "text")


async def test_cancelled_mail_keeps_its_place_until_it_ends() -> None:
    async with a_server(b"") as (mailer, opened, accepted), asyncio.timeout(10.0):
        mails = [asyncio.create_task(mailer.send("ada@example.org", "Hello", "text")) for _ in range(AT_ONCE)]
        for _ in mails:
            await accepted.acquire()
        for one in mails:
            one.cancel()
        await asyncio.wait(mails)

        further = asyncio.create_task(mailer.send("bob@example.org", "Hello", "text"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(accepted.acquire(), 0.3)
        opened[0].close()
        await accepted.acquire()

        assert len(opened) == AT_ONCE + 1
        opened[-1].close()
        with pytest.raises(MailError):
            await further
