"""Tests that addresses can be parsed again for any name."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest

from domain.errors import InvalidInputError
from transfer.urls import TransferUrls, UploadTokens

TOKENS = UploadTokens(bytes(32))


def urls() -> TransferUrls:
    return TransferUrls(TOKENS, master_url="http://example.org/muster/")


@pytest.mark.parametrize("name", ["pi_1", "a b", "a?b#c", "a+b", "größe", "a;b=c"])
def test_a_download_address_holds_the_name_in_one_segment(name: str) -> None:
    parts = urlsplit(urls().download_url(name))
    assert (parts.query, parts.fragment) == ("", "")
    assert unquote(parts.path.rpartition("/")[2]) == name


def test_a_bad_name_has_no_address() -> None:
    with pytest.raises(InvalidInputError):
        urls().download_url("../x")


def test_uploads_go_to_the_master_url() -> None:
    assert urls().upload_url() == "http://example.org/muster/upload"


def test_the_token_given_is_the_one_that_is_checked() -> None:
    assert TOKENS.right(urls().token("a_1_1_1_r0", 5), "a_1_1_1_r0", 5)
