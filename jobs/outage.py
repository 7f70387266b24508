"""Notices that the project was away, and moves open due dates by as long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from domain.clock import Clock
from domain.settings import LifecycleSettings
from domain.units import Seconds
from jobs.ports import Outages
from lifecycle.grace import outage_shift_s

MISSED_ROUNDS = 3  # a gap of fewer sweep intervals is no outage, however long the intervals are


@dataclass(frozen=True, slots=True)
class OutageReport:
    """`moved` due dates were moved by `by_s`."""

    by_s: Seconds = Seconds(0.0)
    moved: int = 0


class OutageWatch:
    """Notes at every round that the project is alive; a long gap between two notes was an outage."""

    def __init__(self, outages: Outages, clock: Clock, settings: Callable[[], LifecycleSettings]) -> None:
        self._outages = outages
        self._clock = clock
        self._settings = settings
        self._log = structlog.get_logger("jobs.outage")

    async def run_once(self) -> OutageReport:
        """Note that the project is alive, and make up for an outage that ends with this note."""
        now, settings = self._clock.now(), self._settings()
        alive_until = await self._outages.heartbeat(now=now)
        by_s = outage_shift_s(alive_until, now, settings)
        if alive_until is None or by_s <= 0.0 or by_s < MISSED_ROUNDS * settings.sweep_interval_s:
            return OutageReport()
        moved = await self._outages.move_open_deadlines(by_s=by_s, alive_until=alive_until)
        self._log.warning("open due dates moved by an outage", by_s=by_s, moved=moved)
        return OutageReport(by_s, moved)
