"""Tests that mail needs a server and a sender, and that a failure is an error of its own."""

from __future__ import annotations

import pytest

from administration.mail import Mailer, MailError
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
