"""Tests wait for conditions, never for time to pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from domain.clock import SystemClock

CLOCK = SystemClock()
LOOK_S = 0.02


async def until(condition: Callable[[], Awaitable[bool] | bool], most_s: float, what: str) -> float:
    """Seconds until the condition holds. Fails when it takes too long."""
    began_s = CLOCK.monotonic()
    while True:
        holds = condition()
        if holds if isinstance(holds, bool) else await holds:
            return CLOCK.monotonic() - began_s
        assert CLOCK.monotonic() < began_s + most_s, f"not within {most_s:g} s: {what}"
        await CLOCK.sleep(LOOK_S)
