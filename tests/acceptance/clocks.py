"""The machine's clock, which a test may set forward: hours pass at once, sockets and databases keep going."""

from __future__ import annotations

from domain.clock import SystemClock
from domain.units import Instant, Seconds


class ForwardClock(SystemClock):
    """Real time, and `ahead_s` seconds."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> Instant:
        return Instant(super().now() + self.ahead_s)

    def monotonic(self) -> Seconds:
        return Seconds(super().monotonic() + self.ahead_s)

    def forward(self, by_s: float) -> None:
        """Let `by_s` seconds pass."""
        self.ahead_s += by_s
