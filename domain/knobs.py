"""What is a settings field? Its default, meaning and range. Pure."""

from __future__ import annotations

from dataclasses import field
from typing import Any


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

    A text matches `pattern` as a whole; `expected` says the same in words.
    """
    metadata = {"meaning": meaning, "low": low, "high": high, "pattern": pattern, "expected": expected}
    return field(default=default, metadata=metadata)


def one_of(default: str, meaning: str, *names: str) -> Any:
    """A settings field that takes one of some names; the meaning ends in their list."""
    return knob(default, meaning, pattern="|".join(names), expected="one of " + ", ".join(names))
