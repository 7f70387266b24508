"""Whether this node may hand out work: its clock agrees with the database's, its locks are held."""

from __future__ import annotations

from typing import Protocol

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Instant, Seconds

CHECK_S = Seconds(30.0)
WARN_S = Seconds(1.0)
REFUSE_S = Seconds(5.0)

log = structlog.get_logger()


class DatabaseClock(Protocol):
    async def database_now(self) -> Instant: ...


class Locks(Protocol):
    def in_doubt(self) -> bool: ...


class NodePauses:
    """Satisfies the scheduler's Pauses: the clock must be right and the lock connection must live."""

    def __init__(self, clock_check: ClockCheck, locks: Locks) -> None:
        self._clock_check = clock_check
        self._locks = locks

    def refuse_work_because(self, now: Instant) -> str | None:
        """A sentence when this node may not hand out work."""
        if self._locks.in_doubt():
            return "this server has lost sight of its database; no work until it is back"
        return self._clock_check.refuse_work_because(now)


class ClockCheck:
    """Compares the node's clock with the database's every 30 s; half the round trip is taken off."""

    def __init__(self, database: DatabaseClock, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._drift_s = Seconds(0.0)
        self.round_trip_s = Seconds(0.0)  # of the last check that was answered
        self.answered = False  # whether the last check was

    @property
    def drift_s(self) -> Seconds:
        """This node's clock less the database's, as of the last check."""
        return self._drift_s

    def refuse_work_because(self, now: Instant) -> str | None:
        """A sentence when the clocks differ by 5 s or more."""
        if abs(self._drift_s) < REFUSE_S:
            return None
        return f"this server's clock is {self._drift_s:+.1f} s off; no work until it is right"

    async def check_once(self) -> Seconds:
        """Measure the drift: node minus database, seconds."""
        before, asked_at = self._clock.now(), self._clock.monotonic()
        self.answered = False
        database_now = await self._database.database_now()
        after = self._clock.now()
        self.answered, self.round_trip_s = True, Seconds(self._clock.monotonic() - asked_at)
        self._drift_s = Seconds((before + after) / 2 - database_now)
        if abs(self._drift_s) >= WARN_S:
            log.warning("the clock differs from the database's", drift_s=round(self._drift_s, 3))
        return self._drift_s

    async def run(self) -> None:
        while True:
            try:
                await self.check_once()
            except UnavailableError as error:
                log.warning("clock not checked", why=str(error))
            await self._clock.sleep(CHECK_S)
