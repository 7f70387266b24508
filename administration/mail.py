"""Sends mail through the SMTP server named in the settings."""

from __future__ import annotations

import asyncio
import os
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from types import MappingProxyType

import structlog

from domain.errors import MusterError
from domain.settings import MailSettings

PASSWORD = "MUSTER_SMTP_PASSWORD"  # noqa: S105  the name of an environment variable
TIMEOUT_S = 10.0  # of a step
LIMIT_S = 25.0  # of a conversation, less than a round of the notifications
CUT_AGAIN_S = 1.0
AT_ONCE = 4
READY = 220  # the reply code of a server that takes mail

log = structlog.get_logger()


class MailError(MusterError):
    """The SMTP server did not accept a message."""


class Mailer:
    """Sends messages one by one, each over a connection of its own, in a thread."""

    def __init__(
        self,
        settings: Callable[[], MailSettings],
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._limit_s = limit_s
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._tasks = set[asyncio.Task[None]]()

    @property
    def is_on(self) -> bool:
        """Return whether the settings name a server and a sender."""
        settings = self._settings()
        return bool(settings.server and settings.sender)

    async def send(self, to: str, subject: str, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Send a message. Raises MailError. A conversation that began goes on if the caller is cancelled."""
        settings = self._settings()
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = settings.sender, to, subject
        for name, value in {"Auto-Submitted": "auto-generated", **headers}.items():
            message[name] = value
        message.set_content(text)
        try:
            await self._sending.acquire()
            sending = asyncio.create_task(asyncio.to_thread(_send, settings, message, self._tls, self._limit_s))
            self._tasks.add(sending)
            sending.add_done_callback(self._end)
            await asyncio.shield(sending)
        except (OSError, smtplib.SMTPException) as error:  # a refused sign-in or address is an SMTPException
            raise MailError(f"mail to {settings.server}:{settings.port} failed: {error}") from error

    def _end(self, sending: asyncio.Task[None]) -> None:
        self._sending.release()
        self._tasks.discard(sending)
        if not sending.cancelled():
            sending.exception()  # a cancelled caller no longer asks for it

    def send_later(self, to: str, subject: str, text: str) -> None:
        """Send a message in the background. Logs a failure. Does nothing if no server is set."""
        if self.is_on:
            task = asyncio.create_task(self._logged(to, subject, text))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _logged(self, to: str, subject: str, text: str) -> None:
        try:
            await self.send(to, subject, text)
        except MailError as error:
            log.error("mail not sent", why=str(error))


def _send(
    settings: MailSettings, message: EmailMessage, tls: Callable[[], ssl.SSLContext], limit_s: float = LIMIT_S
) -> None:
    if settings.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(timeout=TIMEOUT_S, context=tls())
    else:
        server = smtplib.SMTP(timeout=TIMEOUT_S)
    server._host = settings.server  # type: ignore[attr-defined]  # noqa: SLF001  the name that TLS checks
    with _limited(server, limit_s):
        code, text = server.connect(settings.server, settings.port)
        if code != READY:
            raise smtplib.SMTPConnectError(code, text)
        if settings.tls == "starttls":
            server.starttls(context=tls())
        if settings.user:
            server.login(settings.user, os.environ.get(PASSWORD, ""))
        server.send_message(message)
        with suppress(OSError):  # the message is accepted
            server.quit()


@contextmanager
def _limited(server: smtplib.SMTP, limit_s: float) -> Iterator[None]:
    """Close the connection in the end, and cut it after a time: a slow server can take many steps, each in time."""
    done = threading.Event()

    def watch() -> None:
        wait_s = limit_s
        while not done.wait(wait_s):
            wait_s = CUT_AGAIN_S  # the connection may not be open yet
            with suppress(OSError):
                if server.sock is not None:
                    server.sock.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        server.close()
