"""Which slots to ask the database about next: each is checked once per round."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from domain.units import InstanceId, Seconds


class Sweep:
    """Goes round all slots in `round_s`, a slice at a time, so that no single check is large.

    >>> sweep = Sweep(Seconds(60.0))
    >>> ids = [InstanceId(i) for i in range(120)]
    >>> len(sweep.due(ids, now_s=Seconds(0.0))), len(sweep.due(ids, now_s=Seconds(1.0)))
    (0, 2)
    """

    def __init__(self, round_s: Seconds) -> None:
        self._round_s = round_s
        self._waiting: deque[InstanceId] = deque()
        self._size = 0
        self._started_s: Seconds | None = None
        self._checked = 0

    def due(self, slots: Iterable[InstanceId], *, now_s: Seconds, limit: int = 1000) -> list[InstanceId]:
        """At most `limit` slots to check at `now_s` (monotonic); `slots` are looked at when a round begins.

        t seconds into a round of n slots ceil(n * t / round_s) of them have been handed out.
        """
        if self._started_s is None or (now_s - self._started_s >= self._round_s and not self._waiting):
            self._waiting = deque(slots)
            self._size, self._started_s, self._checked = len(self._waiting), now_s, 0
        share = min(1.0, (now_s - self._started_s) / self._round_s)
        count = min(limit, math.ceil(self._size * share) - self._checked, len(self._waiting))
        self._checked += max(0, count)
        return [self._waiting.popleft() for _ in range(count)]
