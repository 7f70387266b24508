"""Is a job sent to this host checked by copies on others? Pure."""

from __future__ import annotations

import random


def copies_for(
    consecutive_valid: int, adaptive_copies: int, *, rng: random.Random, consecutive_valid_infinite: int = 10
) -> int:
    """How many copies a job needs because this host gets an instance; 0 = leave it as it is.

    A host with more than `consecutive_valid_infinite` valid results in a row is trusted with probability
    1 - 1 / consecutive_valid (POLICY 4.2), so one job in `consecutive_valid` is still checked; every
    other host's job needs `adaptive_copies`. An app with fewer than 2 adaptive copies checks nothing.
    A host with 20 valid results in a row has 1 job in 20 checked.

    >>> copies_for(3, 2, rng=random.Random(0)), copies_for(3, 0, rng=random.Random(0))
    (2, 0)
    >>> rng = random.Random(7)
    >>> sum(copies_for(20, 2, rng=rng) > 0 for _ in range(100))  # about 5
    4
    """
    if adaptive_copies < 2:
        return 0
    trusted = consecutive_valid > consecutive_valid_infinite and rng.random() >= 1.0 / consecutive_valid
    return 0 if trusted else adaptive_copies
