"""Time that only the simulation turns."""

from __future__ import annotations

from typing import NoReturn

from domain.units import Instant, Seconds


class VirtualClock:
    """Satisfies domain.clock.Clock. Nothing takes time; nobody may sleep, because nobody would be woken."""

    def __init__(self, now: Instant) -> None:
        self._started_at = now
        self._now = now

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> Seconds:
        return Seconds(self._now - self._started_at)

    async def sleep(self, duration_s: float) -> NoReturn:
        raise RuntimeError(f"a simulated service sleeps for {duration_s:g} s: the calendar runs it, not a loop")

    def turn_to(self, at: Instant) -> None:
        """Time passes until `at`, and never back."""
        assert at >= self._now, (at, self._now)
        self._now = at
