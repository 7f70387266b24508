"""Shares of accounts and submitters, checked at the edge."""

from __future__ import annotations

from domain.bounds import in_bounds


def checked_shares(shares: float) -> float:
    """A share as it may be stored. Raises InvalidInputError.

    >>> checked_shares(2.5)
    2.5
    """
    return in_bounds("shares", shares)
