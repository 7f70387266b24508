"""The one door to time.

Pure code takes `now`; loops take a `Clock`. Instants come from the wall clock, durations inside the
process from `monotonic`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from domain.units import Instant, Seconds

CLOCK_WAS_AHEAD_S = Seconds(60.0)  # a note so far ahead was made while a clock was wrong


class Clock(Protocol):
    """What a service may know about time."""

    def now(self) -> Instant:
        """The present instant, seconds since the epoch, UTC."""
        ...

    def monotonic(self) -> Seconds:
        """Seconds since an arbitrary start; never goes backward. For durations only."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Wait `duration_s` seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        return Instant(time.time())

    def monotonic(self) -> Seconds:
        return Seconds(time.monotonic())

    async def sleep(self, duration_s: float) -> None:
        await asyncio.sleep(duration_s)
