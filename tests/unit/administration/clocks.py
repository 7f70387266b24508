"""Clocks for tests of loops, without real sleeps."""

from __future__ import annotations

import asyncio

from domain.units import Instant, Seconds
from tests.builders import NOW


class StillClock:
    """Stands still; sleeps are recorded and never end, and `slept` is set by the first."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []
        self.slept = asyncio.Event()

    def now(self) -> Instant:
        return NOW

    def monotonic(self) -> Seconds:
        return Seconds(0.0)

    async def sleep(self, duration_s: float) -> None:
        self.sleeps.append(duration_s)
        self.slept.set()
        await asyncio.Event().wait()


class HastyClock:
    """Advances by each sleep at once; after `rounds` sleeps the next never ends."""

    def __init__(self, rounds: int) -> None:
        self.time = NOW
        self.sleeps: list[float] = []
        self.done = asyncio.Event()
        self._rounds = rounds

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Seconds:
        return Seconds(self.time - NOW)

    async def sleep(self, duration_s: float) -> None:
        self.sleeps.append(duration_s)
        if len(self.sleeps) > self._rounds:
            self.done.set()
            await asyncio.Event().wait()
        self.time = Instant(self.time + duration_s)
