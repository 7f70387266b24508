"""A clock for code that asks for the time and never waits."""

from __future__ import annotations

from domain.units import Instant, Seconds


class FixedClock:
    """Always the same instant."""

    def now(self) -> Instant:
        return Instant(1000.0)

    def monotonic(self) -> Seconds:
        return Seconds(0.0)

    async def sleep(self, duration_s: float) -> None:
        raise AssertionError(f"nothing here sleeps, least of all {duration_s} s")
