"""A clock for code that reads the time and never sleeps."""

from __future__ import annotations

from domain.units import Instant, Seconds


class FixedClock:
    """Always the same instant."""

    def now(self) -> Instant:
        return Instant(1000.0)

    def monotonic(self) -> Seconds:
        return Seconds(0.0)

    async def sleep(self, duration_s: float) -> None:
        raise AssertionError(f"unexpected sleep of {duration_s} s")
