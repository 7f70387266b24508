"""Webhooks are posted only to permitted addresses, and their URLs are checked when a person enters them."""

from __future__ import annotations

import pytest

from administration.access.sign_in import Networks
from administration.notifications.webhook import Permitted, RefusedAddressError, WebhookError, Webhooks
from domain.errors import InvalidInputError


@pytest.mark.parametrize("url", ["https://example.org", "https://example.org:8443/a?b=c", "https://[2606:4700::1111]/"])
def test_public_https_url_is_accepted(url: str) -> None:
    assert Webhooks(lambda: "").checked_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.org/", "ftp://example.org/", "example.org", "https://", "https:///x", ""),
        *("https://user:word@example.org/", "https://example.org/#part", "https://example.org:0/"),
        *(
            "https://example.org:99999/",
            "https://exa mple.org/",
            "https://example.org/\n",
            "https://[::1",
            "https://a]/",
        ),
        *("https://10.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://127.0.0.1:8080/", f"https://a/{'x' * 2000}"),
    ],
)
def test_other_url_is_refused_by_field(url: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Webhooks(lambda: "").checked_url(url)

    assert refused.value.field == "address"


def test_http_needs_a_listed_address() -> None:
    hooks = Webhooks(lambda: "10.1.0.0/16")

    assert hooks.checked_url("http://10.1.2.3/") == "http://10.1.2.3/"
    for url in ("http://93.184.216.34/", "https://10.2.0.1/"):
        with pytest.raises(InvalidInputError):
            hooks.checked_url(url)


@pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f.0.0.1"])
async def test_name_of_a_private_address_is_refused(name: str) -> None:
    with pytest.raises(RefusedAddressError):
        await Permitted(Networks(""), encrypted=True).resolve(name, 443)
    with pytest.raises(WebhookError):
        await Webhooks(lambda: "").post(f"https://{name}/", b"{}", {})
