"""Keeps the job array filled: a refill now and then, and at once when the array has run empty."""

from __future__ import annotations

import asyncio

import structlog

from domain.clock import Clock
from feeder.array import JobArray
from feeder.ports import CatalogueSource
from feeder.refill import Refill, Refiller
from feeder.rotation import Unrunnable

log = structlog.get_logger()


class Feeder:
    """One request worker's feeder. `last` is its latest refill, `failures` counts refills that raised."""

    def __init__(self, array: JobArray, refiller: Refiller, settings: CatalogueSource, clock: Clock) -> None:
        self.array = array
        self.last: Refill | None = None
        self.failures = 0
        self._refiller = refiller
        self._settings = settings
        self._clock = clock

    async def refill_once(self) -> Refill:
        """Bring the array to what it should hold now. Raises what the database raises."""
        self.array.emptied.clear()
        self.last = await self._refiller.refill(self._settings.catalogue())
        return self.last

    async def run(self) -> None:
        """Refill until cancelled."""
        while True:
            await self._refill_and_log()
            await self._rest()

    def report(self) -> tuple[Unrunnable, ...]:
        """What nobody can run, and why; longest first."""
        return self.array.unrunnable()

    async def _refill_and_log(self) -> None:
        try:
            done = await self.refill_once()
        except Exception:
            self.failures += 1
            log.exception("refill failed", failures=self.failures)
            return
        if done.placed or done.dropped:
            log.debug("refill", **{name: getattr(done, name) for name in Refill.__slots__})

    async def _rest(self) -> None:
        """Until the interval has passed or the array was emptied."""
        interval_s = self._settings.catalogue().settings.feeder.interval_s
        waits = [
            asyncio.ensure_future(self._clock.sleep(interval_s)),
            asyncio.ensure_future(self.array.emptied.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
