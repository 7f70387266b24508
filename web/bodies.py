"""Numbers as they come in addresses and forms."""

from __future__ import annotations

from domain.errors import InvalidInputError


def whole_number(text: str, field: str, low: int, high: int) -> int:
    """A whole number in a range. Raises InvalidInputError.

    >>> whole_number("7", "limit", 1, 10), whole_number("-5", "user_priority", -1024, 1023)
    (7, -5)
    """
    digits = text.removeprefix("-") if low < 0 else text
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high:
        return int(text)
    raise InvalidInputError(field, f"a whole number from {low} to {high}", text)
