"""Receivers of notifications: a programmable HTTP server, and SMTP servers with and without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiohttp import web
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.ports import free_port


class Inbox:
    """The handler of an SMTP server: keeps what arrives."""

    def __init__(self) -> None:
        self.mails = list[EmailMessage]()
        self.port = 0
        self.arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802  aiosmtpd's
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self._loop.call_soon_threadsafe(self.arrived.set)
        return "250 OK"

    async def next(self) -> EmailMessage:
        await asyncio.wait_for(self.arrived.wait(), 20)
        self.arrived.clear()
        return self.mails[-1]


@asynccontextmanager
async def smtp_server(
    inbox: Inbox, *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Run an SMTP server on the loopback interface and yield its port."""
    port = free_port()
    controller = Controller(
        inbox,
        hostname="127.0.0.1",
        port=port,
        ssl_context=tls,
        tls_context=starttls,
        require_starttls=starttls is not None,
    )
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


@dataclass
class Hook:
    """A webhook. It replies with `status`, or not at all while `silent`; `kept` are the messages it received."""

    url: str
    status: int = 204
    silent: bool = False
    reply_headers: Mapping[str, str] = field(default_factory=dict)
    kept: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    dropped: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        self.kept.append((request.headers.copy(), await request.read()))
        if self.silent:
            try:
                await asyncio.Event().wait()
            finally:
                self.dropped.set()
        return web.Response(status=self.status, headers=dict(self.reply_headers))


@asynccontextmanager
async def a_hook(*, port: int = 0, **behaviour: Any) -> AsyncIterator[Hook]:
    port = port or free_port()
    hook = Hook(f"http://127.0.0.1:{port}/hook", **behaviour)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", hook.receive)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield hook
    finally:
        await runner.cleanup()
