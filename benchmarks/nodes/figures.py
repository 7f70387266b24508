"""Computes how long clients waited after each kill. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WATCHED_S = 10.0  # requests that begin this soon after a kill, or were unanswered at it, count for it


def slowest_answers_s(requests: NDArray[np.float64], kills: Sequence[float]) -> list[float]:
    """Return, for each kill, the longest wait of a request that was in flight or began within 10 s after it.

    `requests` has the columns began_s, answered_s, port; a wait counts from the later of the kill and its beginning. A
    client that lost its node and switched to the other one has waited since the kill.

    >>> slowest_answers_s(np.array([[8.0, 11.5, 80], [10.5, 11.0, 80], [10.9, 13.9, 81], [21.0, 41.0, 80]]), [10.0])
    [3.0]
    """
    slowest = []
    for killed_s in kills:
        after = (requests[:, 1] > killed_s) & (requests[:, 0] < killed_s + WATCHED_S)
        waits = requests[after, 1] - np.maximum(requests[after, 0], killed_s)
        slowest.append(round(float(waits.max()), 3) if len(waits) else float("inf"))
    return slowest


def is_even(held: Sequence[int], *, workers: int, shards: int) -> bool:
    """Return whether this many workers hold all shards, in numbers that differ by at most one.

    >>> is_even([16, 16, 16, 16], workers=4, shards=64), is_even([21, 21, 22], workers=3, shards=64)
    (True, True)
    >>> is_even([32, 16, 16], workers=3, shards=64), is_even([32, 31], workers=2, shards=64)
    (False, False)
    """
    return len(held) == workers and sum(held) == shards and max(held) - min(held) <= 1
