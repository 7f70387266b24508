"""Tests that a token is valid for one name and one limit, under one secret."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transfer.urls import UploadTokens

TOKENS = UploadTokens(b"s" * 32)


def test_a_token_survives_the_blanks_a_client_strips() -> None:
    token = TOKENS.token("pi_1_1_1_r0", 100)
    assert TOKENS.right(f"\n  {token}\n", "pi_1_1_1_r0", 100)


def test_a_token_is_one_line_of_64_hex_digits() -> None:
    token = TOKENS.token("pi_1_1_1_r0", 100)
    assert len(token) == 64
    assert set(token) <= set("0123456789abcdef")


def test_another_projects_token_is_wrong() -> None:
    assert not TOKENS.right(UploadTokens(b"t" * 32).token("a", 1), "a", 1)


def test_text_that_is_no_token_is_wrong() -> None:
    assert not TOKENS.right("", "a", 1)
    assert not TOKENS.right("é", "a", 1)


@given(
    st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 2**62)),
    st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 2**62)),
)
def test_a_token_fits_only_its_own_name_and_limit(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert TOKENS.right(TOKENS.token(*one), *other) == (one == other)
