"""Numbers as they come in addresses and forms."""

from __future__ import annotations

from domain.errors import InvalidInputError


def whole_number(text: str, field: str, low: int, high: int) -> int:
    """A whole number in a range. Raises InvalidInputError.

    >>> whole_number("7", "limit", 1, 10)
    7
    """
    if text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high:
        return int(text)
    raise InvalidInputError(field, f"a whole number from {low} to {high}", text)
