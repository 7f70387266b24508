"""When is which run due? A full one once a day, the cut points alone every hour in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.clock import Clock
from domain.ranking import HostStatisticsRun
from domain.settings import RankingSettings
from domain.units import Instant, Seconds
from hoststats.ports import Generations
from hoststats.service import HostStatistics

LOOK_EVERY_S = Seconds(60.0)
TRY_AGAIN_S = Seconds(600.0)  # after a run that broke: it may have been the run that broke something
RUNS_LOOKED_AT = 200  # more than a day of hourly runs


class DueRun(StrEnum):
    FULL = "full"
    CUT_POINTS = "cut points"


@dataclass(frozen=True, slots=True)
class TimerReport:
    """One look at the clock: what was due, and the run it led to; None when nothing was, or another had it."""

    due: DueRun | None = None
    run: HostStatisticsRun | None = None


def due_run(
    *, last_full_at: Instant | None, last_at: Instant | None, now: Instant, settings: RankingSettings
) -> DueRun | None:
    """What is due; a project that was never ranked is due at once. An interval of 0 switches its run off. Pure.

    >>> settings, hour = RankingSettings(), 3600.0
    >>> due_run(last_full_at=Instant(0.0), last_at=Instant(22 * hour), now=Instant(23 * hour), settings=settings)
    <DueRun.CUT_POINTS: 'cut points'>
    >>> due_run(last_full_at=Instant(0.0), last_at=Instant(23 * hour), now=Instant(24 * hour), settings=settings)
    <DueRun.FULL: 'full'>
    """
    if settings.run_interval_s > 0 and _past(last_full_at, settings.run_interval_s, now):
        return DueRun.FULL
    if settings.refresh_interval_s > 0 and _past(last_at, settings.refresh_interval_s, now):
        return DueRun.CUT_POINTS
    return None


def _past(last_at: Instant | None, interval_s: Seconds, now: Instant) -> bool:
    return last_at is None or now - last_at >= interval_s


class Timer:
    """Runs what is due, whoever ran last: a cron job counts too. One per cluster, as a background duty."""

    def __init__(
        self,
        statistics: HostStatistics,
        generations: Generations,
        clock: Clock,
        settings: Callable[[], RankingSettings],
    ) -> None:
        self._statistics = statistics
        self._generations = generations
        self._clock = clock
        self._settings = settings
        self._tried_s: Seconds | None = None  # on the monotonic clock

    async def run_once(self) -> TimerReport:
        """Look at the clock once, and do what is due."""
        since_s = None if self._tried_s is None else self._clock.monotonic() - self._tried_s
        due = self._due(await self._generations.runs(RUNS_LOOKED_AT))
        if due is None or (since_s is not None and since_s < TRY_AGAIN_S):
            return TimerReport()
        self._tried_s = self._clock.monotonic()
        run = await self._statistics.run(full=due is DueRun.FULL)
        self._tried_s = None
        return TimerReport(due, run)

    def _due(self, runs: Sequence[HostStatisticsRun]) -> DueRun | None:
        return due_run(
            last_full_at=max((run.started_at for run in runs if run.full), default=None),
            last_at=max((run.started_at for run in runs), default=None),
            now=self._clock.now(),
            settings=self._settings(),
        )
