"""Tests wait for conditions, never for time to pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from domain.clock import SystemClock

CLOCK = SystemClock()
LOOK_S = 0.02
BUSY = 3.0  # limits are for an idle machine; a busy one may take this many times as long


async def until(condition: Callable[[], Awaitable[bool] | bool], most_s: float, what: str) -> float:
    """Return the seconds until the condition holds. Fails after BUSY times the limit."""
    return await within(condition, BUSY * most_s, what)


async def within(condition: Callable[[], Awaitable[bool] | bool], most_s: float, what: str) -> float:
    """Return the seconds until the condition holds. Fails after the limit, which is a promise to users."""
    began_s = CLOCK.monotonic()
    while True:
        holds = condition()
        if holds if isinstance(holds, bool) else await holds:
            return CLOCK.monotonic() - began_s
        assert CLOCK.monotonic() < began_s + most_s, f"not within {most_s:g} s: {what}"
        await CLOCK.sleep(LOOK_S)
