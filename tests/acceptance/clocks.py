"""The machine's clock, which tests may set forward; sockets and databases continue."""

from __future__ import annotations

from domain.clock import SystemClock
from domain.units import Instant, Seconds


class ForwardClock(SystemClock):
    """Real time plus `ahead_s` seconds."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> Instant:
        return Instant(super().now() + self.ahead_s)

    def monotonic(self) -> Seconds:
        return Seconds(super().monotonic() + self.ahead_s)

    def forward(self, by_s: float) -> None:
        """Advance the clock by `by_s` seconds."""
        self.ahead_s += by_s
