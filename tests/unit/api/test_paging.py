"""Cursors continue where a page ended, and are valid only for their own list."""

from __future__ import annotations

from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.paging import MOST_KEY, Page, cursor_of, key_of, page_of, page_of_all
from domain.errors import InvalidInputError
from tests.facts import states


class Numbers(TypedDict):
    numbers: list[int]
    next_cursor: str | None


class Names(TypedDict):
    names: list[str]
    next_cursor: str | None


@given(st.integers(0, MOST_KEY) | st.text())
def test_cursor_encodes_the_last_key(key: int | str) -> None:
    assert key_of(cursor_of("jobs", key), "jobs", type(key)) == key


@given(st.text())
def test_invalid_cursor_is_refused(text: str) -> None:
    with states(InvalidInputError, "cursor:", "next_cursor of jobs"):
        key_of(text, "jobs", int)


@pytest.mark.parametrize(
    "cursor", [cursor_of("hosts", 7), cursor_of("jobs", "7"), cursor_of("jobs", -1), cursor_of("jobs", MOST_KEY + 1)]
)
def test_a_cursor_of_another_list_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInputError):
        key_of(cursor, "jobs", int)


def test_next_cursor_only_if_there_is_more() -> None:
    assert page_of(Numbers, [1, 2], Page(limit=2), int) == {"numbers": [1, 2], "next_cursor": None}
    assert page_of(Numbers, [1, 2, 3], Page(limit=2), int) == {
        "numbers": [1, 2],
        "next_cursor": cursor_of("numbers", 2),
    }
    assert page_of(Numbers, [], Page(), int) == {"numbers": [], "next_cursor": None}


@given(st.sets(st.text(max_size=3)), st.integers(1, 5))
def test_pages_add_up_to_the_list(rows: set[str], limit: int) -> None:
    found: list[str] = []
    cursor = None
    while True:
        page = page_of_all(Names, list(rows), Page(limit=limit, cursor=cursor), str)
        found += page["names"]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert found == sorted(rows)
