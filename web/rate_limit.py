"""Rate limits by key: token buckets in the memory of one process.

A bucket is a single number, the time at which it is full again. With rate r and burst b, a request is granted if that
time is less than b/r ahead, and advances it by 1/r.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable

from domain.clock import Clock
from domain.units import Seconds

MOST_KEYS = 100_000  # the least recently used key is dropped first, because its bucket is probably full


class Buckets:
    """The token buckets of one kind of key."""

    def __init__(self, clock: Clock, *, most_keys: int = MOST_KEYS) -> None:
        self._clock = clock
        self._most_keys = most_keys
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def wait_s(self, key: Hashable, *, per_s: float, burst: int) -> Seconds:
        """Take a token and return 0, or return the seconds until one is available. `per_s` 0 means no limit."""
        if per_s <= 0:
            return Seconds(0.0)
        now = self._clock.monotonic()
        full_at = max(now, self._full_at.get(key, now))
        wait_s = full_at + 1 / per_s - now - burst / per_s
        if wait_s > 1e-9 / per_s:  # ignores rounding errors
            self._full_at.move_to_end(key)
            return Seconds(wait_s)
        self._full_at[key] = full_at + 1 / per_s
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._most_keys:
            self._full_at.popitem(last=False)
        return Seconds(0.0)

    def left(self, key: Hashable, *, per_s: float, burst: int) -> tuple[int, Seconds]:
        """Return the tokens left, and the seconds until the bucket is full again; it takes no token."""
        full_s = max(0.0, self._full_at.get(key, 0.0) - self._clock.monotonic())
        return max(0, math.floor(burst - full_s * per_s + 1e-9)), Seconds(full_s)

    def __len__(self) -> int:
        return len(self._full_at)
