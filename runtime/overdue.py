"""Which duties does no process of the cluster do in time? Every worker reads the deadlines that processes report.

A duty's deadline is in the heartbeat of the process that has its lock: process_report, every 10 s. It stays there when
that process dies or hangs, and a later one follows when another process has taken the duty over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import structlog

from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import DAY_S, Instant, Seconds, later

READ_EVERY_S = Seconds(10.0)

log = structlog.get_logger()


class Deadlines(Protocol):
    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """The last deadline of each duty, of processes that reported since."""
        ...


class DutyWatch:
    """Knows by when each duty should have been done; while the database is away, by what was read last."""

    def __init__(self, deadlines: Deadlines, clock: Clock) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._known: Mapping[str, Instant] = {}

    def late_s(self) -> dict[str, Seconds]:
        """How long ago each duty should have been done; 0 for a duty that is in time."""
        now = self._clock.now()
        return {duty: Seconds(max(0.0, now - at)) for duty, at in sorted(self._known.items())}

    async def read_once(self) -> None:
        """Raises UnavailableError."""
        self._known = await self._deadlines.duty_deadlines(later(self._clock.now(), -DAY_S))

    async def run(self) -> None:
        while True:
            try:
                await self.read_once()
            except UnavailableError as error:
                log.warning("deadlines of duties not read", why=str(error))
            await self._clock.sleep(READ_EVERY_S)
