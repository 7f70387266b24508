"""Keeps the job array filled: full refills at intervals, and fill-ups between refills while the array is low."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping

import structlog

from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.settings import FeederSettings
from domain.units import Seconds
from feeder.array import JobArray
from feeder.cursors import Cursors
from feeder.partitions import Part
from feeder.ports import Shards, WaitingWork
from feeder.reading import Classes
from feeder.refill import Refill, Refiller
from feeder.revalidation import Revalidation
from feeder.search import Search

LEAST_GAP_S = Seconds(0.02)  # between two refills; at least the duration of the previous one

log = structlog.get_logger()


class Feeder:
    """A request worker's feeder. `last` is the latest refill, `failures` counts failed refills."""

    def __init__(self, array: JobArray, refiller: Refiller, settings: CatalogueSource, clock: Clock) -> None:
        self.array = array
        self.last: Refill | None = None
        self.failures = 0
        self._refiller = refiller
        self._settings = settings
        self._clock = clock

    async def refill_once(self) -> Refill:
        """Run a full refill. Propagates database errors."""
        self.last = await self._refiller.refill(self._settings.catalogue())
        return self.last

    async def plan_once(self) -> Mapping[Part, int]:
        """Return how many slots each batch's urgent (True) and other instances should have, without placing any."""
        return await self._refiller.plan(self._settings.catalogue())

    async def fill_up_once(self) -> Refill:
        """Replace slots taken since the last full refill, using its snapshot. Propagates database errors."""
        self.last = await self._refiller.fill_up(self._settings.catalogue())
        return self.last

    async def run(self) -> None:
        """Refill until cancelled. Refills never run concurrently."""
        while True:
            await self._logged(self.refill_once)
            await self._until_due()

    async def _logged(self, refill: Callable[[], Awaitable[Refill]]) -> Refill | None:
        """Return the refill's result; None if the refill failed."""
        try:
            done = await refill()
        except UnavailableError as error:
            self.failures += 1
            log.warning("refill failed", failures=self.failures, why=str(error))
            return None
        except Exception:
            self.failures += 1
            log.exception("refill failed", failures=self.failures)
            return None
        if done.placed or done.dropped:
            log.debug("refill", **{name: getattr(done, name) for name in Refill.__slots__})
        return done

    async def _until_due(self) -> None:
        """Until the next full refill is due, fill up while the array is low; stop once a fill-up finds nothing."""
        due = asyncio.ensure_future(self._clock.sleep(self._settings.catalogue().settings.feeder.interval_s))
        took_s = self.last.took_s if self.last is not None else Seconds(0.0)
        try:
            while not await self._passes_first(due, self._clock.sleep(max(LEAST_GAP_S, took_s))):
                if await self._passes_first(due, self.array.level.low.wait()):
                    return
                done = await self._logged(self.fill_up_once)
                if done is None or done.found_nothing:
                    self.array.level.rest()
                took_s = done.took_s if done is not None else Seconds(0.0)
        finally:
            due.cancel()

    @staticmethod
    async def _passes_first(due: asyncio.Future[None], other: Coroutine[None, None, object]) -> bool:
        """Wait until one of both finishes. Return whether `due` finished first."""
        waiting = asyncio.ensure_future(other)
        try:
            await asyncio.wait((due, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return due.done()


def build_feeder(waiting: WaitingWork, shards: Shards, settings: CatalogueSource, clock: Clock) -> Feeder:
    """Build a feeder, whose `array` requests use. `settings` are read again for each refill."""

    def feeder_settings() -> FeederSettings:
        return settings.catalogue().settings.feeder

    array = JobArray(clock, feeder_settings)
    cursors, classes = Cursors(), Classes(waiting)
    array.fall_through = Search(waiting, shards, settings, clock, array=array, cursors=cursors, classes=classes).search
    array.stale = Revalidation(waiting, array).recheck
    refiller = Refiller(waiting, shards, clock, array=array, cursors=cursors, classes=classes)
    return Feeder(array, refiller, settings, clock)
