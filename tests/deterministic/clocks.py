"""A node's clock, which runs with the loop and can be stepped."""

from __future__ import annotations

import asyncio

from domain.units import Instant, Seconds

EPOCH = Instant(1_800_000_000.0)


class NodeClock:
    """Satisfies domain.clock.Clock. `off_s` is its error; monotonic durations are unaffected."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.off_s = 0.0

    def now(self) -> Instant:
        return Instant(EPOCH + self._loop.time() + self.off_s)

    def monotonic(self) -> Seconds:
        return Seconds(self._loop.time())

    async def sleep(self, duration_s: float) -> None:
        woken = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, duration_s), _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
