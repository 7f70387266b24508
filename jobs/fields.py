"""Reads validated values from a TOML, JSON or CSV mapping; errors name the invalid field. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from domain.bounds import BOUNDS
from domain.errors import InvalidInputError

_MISSING: Final = object()
_UNCLEAN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Fields:
    """The fields of one table. `where` is the table's name in messages; it is empty for the top level.

    With `from_text`, as for CSV, all values are text, and an empty value counts as missing.

    >>> Fields({"cuont": 3}, where="jobs", known=("count", "quorum"))
    Traceback (most recent call last):
    domain.errors.InvalidInputError: jobs.cuont: expected one of count, quorum; this field is unknown, got 3
    """

    def __init__(
        self, values: Mapping[str, object], *, known: Collection[str], where: str = "", from_text: bool = False
    ) -> None:
        self._where = where
        self._from_text = from_text
        for name, value in values.items():
            if name not in known:
                expected = f"one of {', '.join(sorted(known))}; this field is unknown"
                raise InvalidInputError(self.path(name), expected, value)
        self._values = {name: value for name, value in values.items() if not (from_text and value in ("", None))}

    def path(self, name: str) -> str:
        """Return the field's full name for messages.

        >>> Fields({}, where="jobs", known=()).path("count")
        'jobs.count'
        """
        return f"{self._where}.{name}" if self._where else name

    def has(self, name: str) -> bool:
        return name in self._values

    def text_without(self, names: Collection[str]) -> str:
        """Return the fields and their values as one text, equal for equal fields; without some names."""
        return repr([item for item in self._values.items() if item[0] not in names])

    def whole(self, name: str, low: int, high: int, *, default: int | None = None) -> int:
        """Return an integer from `low` to `high`."""
        expected = f"a whole number from {low} to {high}"
        value = self._given(name, expected, default)
        if isinstance(value, str) and self._from_text:
            value = number_of(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidInputError(self.path(name), expected, self._values.get(name))
        return value

    def number(self, name: str, *, low: float = 0.0, above: float | None = None, default: float | None = None) -> float:
        """Return a finite number of at least `low` or, if `above` is given, greater than `above`."""
        expected = f"a number of at least {low:g}" if above is None else f"a number above {above:g}"
        value = self._given(name, expected, default)
        if isinstance(value, str) and self._from_text:
            value = number_of(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
            raise InvalidInputError(self.path(name), expected, self._values.get(name))
        if value < low or (above is not None and value <= above):
            raise InvalidInputError(self.path(name), expected, value)
        return float(value)

    def bounded(self, name: str, *, default: float | None = None) -> float:
        """Return a number within the bounds that domain/bounds.py gives for the field."""
        bound = BOUNDS[name]
        value = self._given(name, bound.expected, default)
        if isinstance(value, str) and self._from_text:
            value = number_of(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not bound.has(value):
            raise InvalidInputError(self.path(name), bound.expected, self._values.get(name))
        return float(value)

    def text(self, name: str, *, most: int, default: str | None = None) -> str:
        """Return text of at most `most` characters without control characters."""
        expected = f"text of at most {most} characters, without control characters"
        value = self._given(name, expected, default)
        if not isinstance(value, str) or len(value) > most or not is_clean(value):
            raise InvalidInputError(self.path(name), expected, value)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._given(name, "true or false", default)
        if not isinstance(value, bool):
            raise InvalidInputError(self.path(name), "true or false", value)
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str | None = None) -> str:
        """Return one of `choices`."""
        expected = "one of " + ", ".join(choices)
        value = self._given(name, expected, default)
        if not isinstance(value, str) or value not in choices:
            raise InvalidInputError(self.path(name), expected, value)
        return value

    def table(self, name: str) -> Mapping[str, object]:
        """Return a table; an empty one if it is missing."""
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise InvalidInputError(self.path(name), "a table", value)
        return value

    def tables(self, name: str) -> list[Mapping[str, object]]:
        """Return a list of tables; an empty one if it is missing."""
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise InvalidInputError(self.path(name), "a list of tables", value)
        return value

    def ids(self, name: str, *, most: int) -> tuple[int, ...]:
        """Return a list of distinct positive integers in ascending order; an empty one if it is missing."""
        expected = f"a list of at most {most} whole numbers above 0"
        value = self._given(name, expected, ())
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise InvalidInputError(self.path(name), expected, value)
        if any(isinstance(one, bool) or not isinstance(one, int) or not 1 <= one < 2**62 for one in value):
            raise InvalidInputError(self.path(name), expected, value)
        return tuple(sorted(set(value)))

    def _given(self, name: str, expected: str, default: object) -> object:
        value = self._values.get(name, _MISSING)
        if value is not _MISSING:
            return value
        if default is None:
            raise InvalidInputError(self.path(name), expected, None)
        return default


def is_clean(text: str) -> bool:
    """Return whether the text contains no control characters and can be encoded as UTF-8.

    >>> is_clean("--digits 100 é"), is_clean("a\\nb"), is_clean("\\ud800")
    (True, False, False)
    """
    return _UNCLEAN.search(text) is None


def number_of(text: object) -> object:
    """Return the number in a CSV cell, or the value itself if it is not a number in text."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text) if "_" not in text else text
        except ValueError:
            continue
    return text


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floating-point range
        return False
