"""Sends mail through the SMTP server named in the settings."""

from __future__ import annotations

import asyncio
import os
import smtplib
import ssl
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from types import MappingProxyType

import structlog

from domain.errors import MusterError
from domain.settings import MailSettings

PASSWORD = "MUSTER_SMTP_PASSWORD"  # noqa: S105  the name of an environment variable
TIMEOUT_S = 10.0
AT_ONCE = 4

log = structlog.get_logger()


class MailError(MusterError):
    """The SMTP server did not accept a message."""


class Mailer:
    """Sends messages one by one, each over a connection of its own, in a thread."""

    def __init__(
        self, settings: Callable[[], MailSettings], tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._tasks = set[asyncio.Task[None]]()

    @property
    def is_on(self) -> bool:
        """Return whether the settings name a server and a sender."""
        settings = self._settings()
        return bool(settings.server and settings.sender)

    async def send(self, to: str, subject: str, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Send a message. Raises MailError."""
        settings = self._settings()
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = settings.sender, to, subject
        for name, value in {"Auto-Submitted": "auto-generated", **headers}.items():
            message[name] = value
        message.set_content(text)
        try:
            async with self._sending:
                await asyncio.to_thread(_send, settings, message, self._tls)
        except (OSError, smtplib.SMTPException) as error:  # a refused sign-in or address is an SMTPException
            raise MailError(f"mail to {settings.server}:{settings.port} failed: {error}") from error

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


def _send(settings: MailSettings, message: EmailMessage, tls: Callable[[], ssl.SSLContext]) -> None:
    if settings.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(settings.server, settings.port, timeout=TIMEOUT_S, context=tls())
    else:
        server = smtplib.SMTP(settings.server, settings.port, timeout=TIMEOUT_S)
    with server:
        if settings.tls == "starttls":
            server.starttls(context=tls())
        if settings.user:
            server.login(settings.user, os.environ.get(PASSWORD, ""))
        server.send_message(message)
