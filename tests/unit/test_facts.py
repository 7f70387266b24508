"""The check of messages by their facts: `tests/facts.py`."""

from __future__ import annotations

import doctest

import pytest

from tests import facts


def test_examples_hold() -> None:
    assert doctest.testmod(facts).failed == 0


def test_a_fact_is_not_found_inside_another_word_or_number() -> None:
    message = "jobs.count: 1000000 jobs, at most 10.5"
    assert facts.missing(message, "count:", 100, "10", "job", ".5") == ["count:", "100", "10", "job", ".5"]
    assert facts.missing(message, "jobs.count:", 1000000, 10.5) == []


def test_states_fails_if_a_fact_is_missing() -> None:
    with facts.states(ValueError, "invalid literal", 10):
        int("x")
    with pytest.raises(AssertionError), facts.states(ValueError, "invalid literal", 16):
        int("x")
