"""Tests that every query has a header and a caller, and does not use the database's clock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import store
from domain.errors import NotFoundError
from store.queries import blocks, load, queries

SOURCE = "".join(path.read_text() for path in sorted(Path(store.__file__).parent.glob("*.py")))


@pytest.mark.parametrize("name", sorted(queries()))
def test_a_query_says_its_purpose_its_arguments_and_its_result(name: str) -> None:
    header = "".join(line for line in load(name).splitlines() if line.startswith("--"))
    assert re.match(r"-- Purpose: .+-- Arguments: .+-- Result: .+", header)


@pytest.mark.parametrize("name", sorted(queries()))
def test_a_query_is_used(name: str) -> None:
    assert f'"{name}"' in SOURCE


@pytest.mark.parametrize("name", sorted(set(queries()) - {"database_now"}))
def test_a_query_asks_no_clock(name: str) -> None:
    assert not re.search(r"\b(now\(\)|clock_timestamp|current_timestamp|localtimestamp)", load(name), re.IGNORECASE)


@pytest.mark.parametrize("name", sorted(queries()))
def test_a_queries_arguments_are_all_described(name: str) -> None:
    header, body = (
        "\n".join(line for line in load(name).splitlines() if line.startswith("--") is commented)
        for commented in (True, False)
    )
    used = {int(number) for number in re.findall(r"\$(\d+)", body)}
    described = {int(number) for number in re.findall(r"\$(\d+)", header)}
    for first, last in re.findall(r"\$(\d+) to \$(\d+)", header):
        described |= set(range(int(first), int(last) + 1))
    assert used == described


def test_every_query_that_is_named_exists() -> None:
    named = set(re.findall(r'load\("([a-z_]+)"\)|(?:execute|fetch(?:_[a-z]+)?)\(\s*"([a-z_]+)"', SOURCE))
    assert {one or other for one, other in named} <= set(queries())


def test_an_unknown_query_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        load("no_such_query")


def test_text_before_the_first_name_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"some\.sql"):
        blocks("SELECT 1;\n-- name: one\nSELECT 1;\n", "some.sql")
