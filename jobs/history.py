"""Moves jobs of batches that ended long ago out of the busy tables, a part at a time, so that those stay small."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from domain.clock import Clock
from domain.history import START, MovedJobs
from domain.settings import StorageSettings
from domain.units import later
from jobs.ports import EndedWork

LIMIT = 500  # jobs looked at in one step
INTERVAL_S = 600.0  # between two looks at everything
REST = 3.0  # times as long as a step took: moving gets a quarter of a connection, requests come first


class HistoryMover:
    """Runs in one process per cluster. Broken off anywhere, it starts over: what was moved is not met again."""

    def __init__(
        self, work: EndedWork, clock: Clock, settings: Callable[[], StorageSettings], *, limit: int = LIMIT
    ) -> None:
        self._work = work
        self._clock = clock
        self._settings = settings
        self._limit = limit
        self._after = START
        self._jobs = 0  # moved since the start of this look at everything
        self._log = structlog.get_logger("jobs.history")

    async def run_once(self) -> MovedJobs:
        """One step, and a rest when there is more to do."""
        began_s = self._clock.monotonic()
        before = later(self._clock.now(), -self._settings().keep_ended_s)
        report = await self._work.move_ended(before=before, after=self._after, limit=self._limit)
        self._after = report.after
        self._jobs += report.jobs
        if report.more:
            await self._clock.sleep(REST * (self._clock.monotonic() - began_s))
        elif self._jobs:
            self._log.info("jobs moved to the history", jobs=self._jobs, ended_before=before)
            self._jobs = 0
        return report
