"""Durations in words."""

from __future__ import annotations

import doctest

from hypothesis import example, given
from hypothesis import strategies as st

from domain import formatting
from domain.formatting import exactly, in_words, told

UNITS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}


def seconds_in(words: str) -> float:
    """Parse a formatted duration."""
    parts = words.removeprefix("- ").split()
    return sum(float(count) * UNITS[unit] for count, unit in zip(parts[::2], parts[1::2], strict=True))


def test_the_examples_hold() -> None:
    assert doctest.testmod(formatting).failed == 0


@given(st.floats(10.0, 1e9))
@example(963_473_399.5)
@example(86_369.5)
def test_rounding_error_is_at_most_half_the_smaller_unit(seconds: float) -> None:
    half_s = 0.5 if seconds < 3600.0 else 30.0 if seconds < 86400.0 else 1800.0

    assert abs(seconds_in(in_words(seconds)) - seconds) <= half_s + 1e-6


@given(st.floats(0.0, 1e9))
def test_exact_form_keeps_milliseconds(seconds: float) -> None:
    assert abs(seconds_in(exactly(seconds)) - seconds) <= 0.001


def test_a_unit_is_never_full() -> None:
    assert [in_words(s) for s in (0.00999, 0.9994, 0.9996)] == ["10 ms", "999 ms", "1 s"]
    assert [in_words(s) for s in (119.4, 119.6, 3599.6, 86369.0, 86399.0)] == [
        "119 s",
        "2 min",
        "1 h",
        "23 h 59 min",
        "1 d",
    ]


def test_lengths_without_end_have_words_too() -> None:
    assert told("{0:length}; {1:length}", float("inf"), float("nan")) == f"{exactly(float('inf'))}; an unknown time"
    assert exactly(float("inf")) == "an infinite time"
    assert in_words(float("-inf")) == "an infinite time"


def test_a_sentence_without_lengths_takes_its_terms_as_they_are() -> None:
    assert told("needs {0:g} CPUs, host has {1}", 4.0, 2) == "needs 4 CPUs, host has 2"


def test_equal_lengths_stay_in_words() -> None:
    assert told("{0:length} and {1:length}", 604_801.0, 604_801.0) == "7 d and 7 d"
