"""Notices that the project was away, and has open due dates moved by as long."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from domain.clock import Clock
from domain.settings import LifecycleSettings
from jobs.ports import OutageReport, Outages
from lifecycle.turnaround import least_outage_s

LIMIT = 5_000  # due dates moved per transaction


class OutageWatch:
    """Notes at every round that the project is alive; a long gap between two notes was an outage."""

    def __init__(
        self, outages: Outages, clock: Clock, settings: Callable[[], LifecycleSettings], *, limit: int = LIMIT
    ) -> None:
        self._outages = outages
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._log = structlog.get_logger("jobs.outage")

    async def run_once(self) -> OutageReport:
        """Note that the project is alive, and make up for some of an outage, of this round or an earlier one.

        Until a report without `more` nothing may be timed out.
        """
        report = await self._outages.note_alive(
            now=self._clock.now(), outage_at_least_s=least_outage_s(self._settings()), limit=self._limit
        )
        if report.moved:
            self._log.warning(
                "open due dates moved by an outage", by_s=report.by_s, moved=report.moved, more=report.more
            )
        return report
