"""The only access to the system clock.

Pure code takes `now`; loops take a `Clock`. Instants come from the wall clock, durations within a process from
`monotonic`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from domain.units import Instant, Seconds

CLOCK_WAS_AHEAD_S = Seconds(60.0)  # a timestamp further ahead than this was written by a wrong clock


class Clock(Protocol):
    """Access to time for services."""

    def now(self) -> Instant:
        """Return the current instant in seconds since the epoch, UTC."""
        ...

    def monotonic(self) -> Seconds:
        """Return seconds since an arbitrary start; never goes backward. For durations only."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Wait `duration_s` seconds."""
        ...


class SystemClock:
    """The operating system's clock."""

    def now(self) -> Instant:
        return Instant(time.time())

    def monotonic(self) -> Seconds:
        return Seconds(time.monotonic())

    async def sleep(self, duration_s: float) -> None:
        await asyncio.sleep(duration_s)
