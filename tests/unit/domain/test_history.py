"""Months are in UTC, and their bounds hold exactly their instants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from domain.history import checked_month, month_bounds, month_of
from domain.units import Instant
from tests.facts import states

LAST = 253_000_000_000.0  # in the year 9987


@given(st.floats(0.0, LAST))
def test_an_instant_lies_within_its_month(at: float) -> None:
    starts_at, ends_at = month_bounds(month_of(Instant(at)))

    assert starts_at <= at < ends_at


@given(st.floats(0.0, LAST))
def test_months_follow_each_other_without_a_gap(at: float) -> None:
    _, ends_at = month_bounds(month_of(Instant(at)))

    assert month_bounds(month_of(ends_at))[0] == ends_at
    assert month_of(ends_at) > month_of(Instant(at))


@pytest.mark.parametrize("text", ["2026-3", "2026-13", "2026-00", "26-03", "2026-03-01", "", "1969-12", "٢٠٢٦-03"])
def test_what_is_no_month_is_refused_with_an_example(text: str) -> None:
    with states(InvalidInputError, "--before:", "month like 2026-03"):
        checked_month("--before", text)


def test_a_month_is_taken_as_it_is() -> None:
    assert checked_month("--before", "2026-03") == "2026-03"
