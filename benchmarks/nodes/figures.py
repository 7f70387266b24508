"""How long did clients wait after each kill? Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WATCHED_S = 10.0  # requests that begin so long after a kill, or before it and unanswered, are its requests


def slowest_answers_s(requests: NDArray[np.float64], kills: Sequence[float]) -> list[float]:
    """For each kill the longest wait of a request that was under way at the kill or began within 10 s after it.

    `requests` has the columns began_s, answered_s, port; a wait counts from the kill or from its beginning, whichever
    is later. A client that lost its node and came to the other one waits since the kill.

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
    """Whether all shards are held by that many workers, the same number each or one more.

    >>> is_even([16, 16, 16, 16], workers=4, shards=64), is_even([21, 21, 22], workers=3, shards=64)
    (True, True)
    >>> is_even([32, 16, 16], workers=3, shards=64), is_even([32, 31], workers=2, shards=64)
    (False, False)
    """
    return len(held) == workers and sum(held) == shards and max(held) - min(held) <= 1
