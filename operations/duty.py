"""A background duty: done once per cluster, again and again, whatever one round runs into."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Seconds

STAND_BY_S = Seconds(5.0)

log = structlog.get_logger()


class Locks(Protocol):
    async def mine(self, duty: str) -> bool: ...


class Duty:
    """Runs `run_once` every `interval_s()` seconds while this process holds the duty's lock."""

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Awaitable[object]],
        *,
        locks: Locks,
        clock: Clock,
        interval_s: Callable[[], float],
    ) -> None:
        self.name = name
        self._run_once = run_once
        self._locks = locks
        self._clock = clock
        self._interval_s = interval_s

    async def step(self) -> float:
        """One round; returns the seconds until the next."""
        try:
            if not await self._locks.mine(self.name):
                return STAND_BY_S
            report = await self._run_once()
        except UnavailableError as error:
            log.warning("duty not done", duty=self.name, why=str(error))
            return STAND_BY_S
        log.debug("duty done", duty=self.name, report=report)
        return self._interval_s()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(await self.step())
