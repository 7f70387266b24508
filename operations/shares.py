"""Shares of accounts and submitters, checked at the edge."""

from __future__ import annotations

import math

from domain.errors import InvalidInputError


def checked_shares(shares: float) -> float:
    """A share as it may be stored: a finite number of at least 0. Raises InvalidInputError.

    >>> checked_shares(2.5)
    2.5
    """
    if not (math.isfinite(shares) and shares >= 0):
        raise InvalidInputError("shares", "a number of at least 0", shares)
    return shares
