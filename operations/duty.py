"""A background duty: done once per cluster, or once per folder, again and again, whatever one round runs into."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Instant, Seconds

STAND_BY_S = Seconds(5.0)
MOST_TOLD = 500  # characters of a failure

log = structlog.get_logger()


class Locks(Protocol):
    async def mine(self, duty: str) -> bool: ...


class Duty:
    """Runs `run_once` every `interval_s()` seconds while this process holds the duty's lock: its name, or `lock`.

    A report with `more` set says that work is waiting: the next round follows at once. What a round
    raises is logged and counted in `failures`, and the duty goes on. How the last rounds went is there to be looked at.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Awaitable[object]],
        *,
        locks: Locks,
        clock: Clock,
        interval_s: Callable[[], float],
        lock: str = "",
    ) -> None:
        self.name = name
        self.failures = 0
        self.runs = 0
        self.ran_at: Instant | None = None  # the end of the last round that went well, and what it took
        self.took_s = Seconds(0.0)
        self.is_mine = False  # whether this process held the lock when it looked last
        self.failed_at: Instant | None = None
        self.failure = ""  # what the last round that failed raised
        self._run_once = run_once
        self._locks = locks
        self._lock = lock or name
        self._clock = clock
        self._interval_s = interval_s

    async def step(self) -> float:
        """One round; returns the seconds until the next."""
        try:
            self.is_mine = await self._locks.mine(self._lock)
            if not self.is_mine:
                return STAND_BY_S
            began_s = self._clock.monotonic()
            report = await self._run_once()
        except UnavailableError as error:
            log.warning("duty not done", duty=self.name, why=str(error))
            return STAND_BY_S
        except Exception as error:
            self.failures += 1
            self.failed_at, self.failure = self._clock.now(), f"{type(error).__name__}: {error}"[:MOST_TOLD]
            log.exception("duty failed", duty=self.name, failures=self.failures)
            return STAND_BY_S  # the other duties go on
        self.runs += 1
        self.ran_at, self.took_s = self._clock.now(), Seconds(self._clock.monotonic() - began_s)
        log.debug("duty done", duty=self.name, report=report)
        return 0.0 if getattr(report, "more", False) else self._interval_s()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(await self.step())
