"""The attach replies, read as the stock client reads them."""

from __future__ import annotations

import re

import pytest

from domain.errors import InvalidInputError
from tests.unit.wire import captured
from wire import attach


def without_prolog(document: bytes) -> bytes:
    return re.sub(rb"^<\?xml[^>]*>\n", b"", document)


def test_a_project_config_is_what_clients_have_understood() -> None:
    config = attach.ProjectConfig("Fake Project", "http://127.0.0.1:18123/proj/", 6, ("x86_64-pc-linux-gnu",))

    assert without_prolog(attach.encode_project_config(config)) == without_prolog(captured.reply(1))


def test_an_account_is_what_clients_have_understood() -> None:
    account = attach.encode_account("0123456789abcdef0123456789abcdef")

    assert without_prolog(account) == without_prolog(captured.reply(2)) == captured.reply(5)


@pytest.mark.parametrize(
    ("number", "error_num", "message"),
    [
        (3, attach.ERROR_BAD_PASSWORD, "Invalid password"),
        (4, attach.ERROR_NO_SUCH_ACCOUNT, "No account with that email"),
    ],
)
def test_an_error_is_what_clients_have_understood(number: int, error_num: int, message: str) -> None:
    assert without_prolog(attach.encode_error(error_num, message)) == without_prolog(captured.reply(number))


def test_a_page_names_the_scheduler_in_both_forms_on_short_lines() -> None:
    link = attach.scheduler_link("http://127.0.0.1:18123/proj/cgi")

    assert '<link rel="boinc_scheduler" href="http://127.0.0.1:18123/proj/cgi">\n' in link
    assert "<scheduler>http://127.0.0.1:18123/proj/cgi</scheduler>" in link
    assert max(map(len, attach.scheduler_link("http://" + "x" * 193).splitlines())) < 255


def test_a_scheduler_url_too_long_for_a_clients_line_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="scheduler_url: expected at most 200 characters"):
        attach.scheduler_link("http://" + "x" * 200)


def test_text_is_escaped() -> None:
    assert b"<error_msg>a &lt; b</error_msg>" in attach.encode_error(attach.ERROR_BAD_EMAIL, "a < b")


def test_a_password_is_hashed_with_the_e_mail_in_lower_case() -> None:
    assert attach.password_hash("secret", "Me@Example.com") == attach.password_hash("secret", "me@example.com")
    assert attach.password_hash("a", "B") == "187ef4436122d1cc2f40dc2b92f0eba0"  # md5 of "ab"


def test_a_captured_look_up_sends_that_hash() -> None:
    sent = (captured.CAPTURES / "02-lookup-account-ok.request.headers").read_text()

    assert f"passwd_hash={attach.password_hash('secretpw', 'ME@example.com')} " in sent
