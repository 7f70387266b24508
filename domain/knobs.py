"""What is a settings field? Its default, meaning and range. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from difflib import get_close_matches
from typing import Any

from domain.bounds import LONGEST_S, MOST_WHOLE


def knob(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    pattern: str = r"[\s\S]*",
    expected: str = "text",
) -> Any:
    """A settings field: its default, what it means, and its range (both ends allowed).

    A number without an upper end of its own has that of its kind: LONGEST_S, or MOST_WHOLE of a whole number.
    A text matches `pattern` as a whole; `expected` says the same in words.
    """
    if high is None and isinstance(default, (int, float)) and not isinstance(default, bool):
        high = LONGEST_S if isinstance(default, float) else MOST_WHOLE
    metadata = {"meaning": meaning, "low": low, "high": high, "pattern": pattern, "expected": expected}
    return field(default=default, metadata=metadata)


def one_of(default: str, meaning: str, *names: str) -> Any:
    """A settings field that takes one of some names; the meaning ends in their list."""
    return knob(default, meaning, pattern="|".join(names), expected="one of " + ", ".join(names))


def name_of_setting(key: str, known: Iterable[str]) -> str:
    """What was expected instead of a key that no setting has: those of the `known` ones that are nearest to it.

    >>> name_of_setting("deadline.p_tigth", ["deadline.p_tight", "feeder.slots"])
    'the name of a setting (see `muster setting list`), perhaps deadline.p_tight'
    >>> name_of_setting("colour", ["deadline.p_tight", "feeder.slots"])
    'the name of a setting (see `muster setting list`)'
    """
    expected = "the name of a setting (see `muster setting list`)"
    known = list(known)
    near = get_close_matches(key, known, n=3, cutoff=0.8)
    near = near or [one for one in known if key and one.partition(".")[2] == key]
    return f"{expected}, perhaps {' or '.join(near)}" if near else expected
