"""Mail reaches a real SMTP server over STARTTLS and implicit TLS, and only if its certificate is trusted."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from administration.mail import Mailer, MailError
from domain.settings import MailSettings
from tests.acceptance.certificates import make_authority
from tests.acceptance.receivers import Inbox, smtp_server

WAYS: tuple[Literal["starttls", "tls"], ...] = ("starttls", "tls")


def a_mailer(port: int, tls: str, context: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> Mailer:
    settings = MailSettings(server="127.0.0.1", port=port, tls=tls, sender="project@example.org")
    return Mailer(lambda: settings, context)


@pytest.mark.parametrize("way", WAYS)
async def test_mail_over_tls_arrives(way: Literal["starttls", "tls"], tmp_path: Path) -> None:
    server, trusted = make_authority(tmp_path)
    inbox = Inbox()
    async with smtp_server(inbox, **{way: server}) as port:
        mailer = a_mailer(port, way, lambda: ssl.create_default_context(cafile=trusted))

        await mailer.send("ada@example.org", "Hello", "text", {"Message-ID": "<1@example.org>"})

        mail = await inbox.next()
        assert (mail["To"], mail["Message-ID"]) == ("ada@example.org", "<1@example.org>")


@pytest.mark.parametrize("way", WAYS)
async def test_untrusted_certificate_gets_no_mail(way: Literal["starttls", "tls"], tmp_path: Path) -> None:
    server, _ = make_authority(tmp_path)
    inbox = Inbox()
    async with smtp_server(inbox, **{way: server}) as port:
        with pytest.raises(MailError, match="CERTIFICATE_VERIFY_FAILED"):
            await a_mailer(port, way).send("ada@example.org", "Hello", "text")

    assert inbox.mails == []


async def test_server_without_starttls_gets_no_mail() -> None:
    inbox = Inbox()
    async with smtp_server(inbox) as port:
        with pytest.raises(MailError):
            await a_mailer(port, "starttls").send("ada@example.org", "Hello", "text")

    assert inbox.mails == []
