"""Tests that tables of numbers survive COPY's binary format in any chunks."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.binary_copy import HEADER, TRAILER, BinaryCopyError, TableReader, encoded, native_dtype
from tests.facts import states

FIELDS = (("host_id", "i4"), ("active", "?"), ("score", "f8"), ("log_n", "i8"), ("p", "f4"))
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**31), 2**31 - 1),
        st.booleans(),
        st.floats(allow_nan=False),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(width=32, allow_nan=False),
    ),
    max_size=30,
)


def copied(rows: list[tuple[object, ...]]) -> bytes:
    return HEADER + b"".join(encoded(np.array(rows, native_dtype(FIELDS)), FIELDS)) + TRAILER


@given(ROWS, st.lists(st.integers(1, 200), max_size=40))
def test_table_is_read_back_from_any_chunking(rows: list[tuple[object, ...]], lengths: list[int]) -> None:
    reader, stream, start = TableReader(FIELDS), copied(rows), 0
    for length in lengths:
        reader.feed(stream[start : start + length])
        start += length
    reader.feed(stream[start:])

    np.testing.assert_array_equal(reader.table(), np.array(rows, native_dtype(FIELDS)))


def test_a_table_larger_than_any_block_is_read_whole() -> None:
    table = np.zeros(100_000, native_dtype(FIELDS))
    table["host_id"] = np.arange(100_000)
    reader = TableReader(FIELDS)
    for piece in (HEADER, *encoded(table, FIELDS), TRAILER):
        reader.feed(piece)

    np.testing.assert_array_equal(reader.table(), table)


def test_a_row_has_the_format_that_postgresql_documents() -> None:
    [row] = encoded(np.array([(7, 0.5)], native_dtype((("a", "i4"), ("b", "f8")))), (("a", "i4"), ("b", "f8")))

    assert row == struct.pack(">hiiid", 2, 4, 7, 8, 0.5)


def test_a_null_has_a_length_of_minus_one_and_no_value() -> None:
    table = np.array([(7, 0.5)], native_dtype((("a", "i4"), ("b", "f4"))))

    [row] = encoded(table, (("g", "i4"), ("a", "i4"), ("b", "f4")), nulls=frozenset("b"), fixed={"g": 3})

    assert row == struct.pack(">hiiiii", 3, 4, 3, 4, 7, -1)


@pytest.mark.parametrize(
    ("stream", "facts"),
    [
        (HEADER, ("end", "b''")),
        (b"", ("end", "b''")),
        (b"host_id,score\n1,2\n3,4\n", ("header",)),
        (copied([(1, True, 0.0, 1, 0.5)])[:-10], ("end",)),
        (HEADER + struct.pack(">h45s", 4, b"") + TRAILER, ("5 fields", "{4}")),
        (HEADER + struct.pack(">hi41s", 5, -1, b""), ("host_id:", "4", "bytes", "-1")),
    ],
    ids=["only a header", "nothing", "text", "broken off", "fewer fields", "a null"],
)
def test_what_is_no_such_table_is_refused(stream: bytes, facts: tuple[str, ...]) -> None:
    reader = TableReader(FIELDS)

    with states(BinaryCopyError, *facts):
        reader.feed(stream)
        reader.table()
