"""Runs the host statistics (read, rank, write, publish) on a timer, a few apps at a time to bound memory.

A full run is made once a day, and a run that computes only the cut points every hour in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import structlog

from domain.apps import App, ProcessorType
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.ranking import CutPoints, HostStatisticsRun, RankedPart, Since
from domain.settings import RankingSettings
from domain.units import Instant, Seconds
from hoststats.apps import RankedPiece, rank_app
from hoststats.ports import Generations, HostStatisticsPorts, NewGeneration, Table

log = structlog.get_logger("hoststats")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: `apps_done` out of `apps`, and the last step, for an app with `rows` rows."""

    apps_done: int
    apps: int
    app_name: str
    step: str  # read or ranked
    rows: int
    processor_type: ProcessorType | None = None


Report = Callable[[Progress], None]


def in_silence(progress: Progress) -> None:
    """Ignore a progress report."""


class HostStatistics:
    """Ranks all hosts. Any process may run it, but only one run is in progress at a time."""

    def __init__(self, ports: HostStatisticsPorts, clock: Clock) -> None:
        self._ports = ports
        self._clock = clock

    async def run(self, *, full: bool = True, report: Report = in_silence) -> HostStatisticsRun | None:
        """Publish a new generation and return the run; `full` includes the percentiles of all rows, not only the cuts.

        Returns None while another run is in progress. If a run is interrupted, the current generation remains.
        """
        started_at, began_s = self._clock.now(), self._clock.monotonic()
        async with self._ports.generations.new(now=started_at, full=full) as generation:
            if generation is None:
                return None
            catalogue = await self._ports.catalogues.load_catalogue()
            writing = _Writing(generation if full else None)
            try:
                cuts, summaries = await self._ranked(writing, catalogue, started_at, report)
                await writing.finish()
            finally:
                await writing.stop()
            seconds = Seconds(self._clock.monotonic() - began_s)
            run = HostStatisticsRun(generation.number, full, started_at, seconds, tuple(summaries))
            await generation.publish(cuts, run)
        removed = await self._ports.generations.remove_old()
        log.info(
            "hosts ranked",
            generation=run.generation,
            full=full,
            apps=run.apps,
            rows=run.rows,
            ranked=run.ranked,
            seconds=round(seconds, 3),
            removed=removed,
        )
        return run

    async def _ranked(
        self, writing: _Writing, catalogue: Catalogue, now: Instant, report: Report
    ) -> tuple[list[CutPoints], list[RankedPart]]:
        cuts, summaries = list[CutPoints](), list[RankedPart]()
        tables, current = self._ports.tables, catalogue.current
        for app_id in sorted(current):
            await tables.refresh_turnarounds(app_id)
        done = 0
        async for app_id, table in tables.of_apps(current, Since.of(now, catalogue.settings.ranking)):
            turn = _Turn(catalogue.apps[app_id], done, len(current), report)
            parts = await self._app(table, catalogue, now, turn)
            cuts += [part.cuts for part in parts]
            summaries += [part.summary for part in parts]
            await writing.begin([part.percentiles for part in parts])
            done += 1
        return cuts, summaries

    async def _app(self, table: Table, catalogue: Catalogue, now: Instant, turn: _Turn) -> list[RankedPiece]:
        app_id, settings = turn.app.app_id, catalogue.settings
        versions = catalogue.current[app_id]
        turn.tell("read", table.size)
        facts = await self._ports.tables.facts(app_id)
        # In a thread, because other periodic tasks run in this process and sorting millions of rows takes seconds.
        parts = await asyncio.to_thread(
            lambda: list(rank_app(turn.app, versions, table, facts=facts, now=now, settings=settings))
        )
        for part in parts:
            turn.tell("ranked", part.summary.rows, part.summary.processor_type)
        return parts


class _Writing:
    """Writes one app's percentiles while the next app is read. Without a generation, it writes nothing."""

    def __init__(self, generation: NewGeneration | None) -> None:
        self._generation = generation
        self._task: asyncio.Task[None] | None = None

    async def begin(self, tables: Sequence[Table]) -> None:
        """Start writing these records after the previous ones; at most two apps' tables are in memory."""
        await self.finish()
        if self._generation is not None:
            self._task = asyncio.create_task(self._write(self._generation, tables))

    async def _write(self, generation: NewGeneration, tables: Sequence[Table]) -> None:
        for table in tables:
            await generation.write(table)

    async def finish(self) -> None:
        """Wait until everything is written. Raises any error of writing."""
        if self._task is not None:
            await self._task
            self._task = None

    async def stop(self) -> None:
        """Cancel writing after the run was interrupted."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Turn:
    """An app in the run, with its position among all apps."""

    app: App
    done: int
    apps: int
    report: Report

    def tell(self, step: str, rows: int, kind: ProcessorType | None = None) -> None:
        self.report(Progress(self.done, self.apps, self.app.name, step, rows, kind))


LOOK_EVERY_S = Seconds(60.0)
TRY_AGAIN_S = Seconds(600.0)  # pause after a failed run, because the run may have caused the failure
RUNS_LOOKED_AT = 200  # more than one day of hourly runs


class DueRun(StrEnum):
    FULL = "full"
    CUT_POINTS = "cut points"


@dataclass(frozen=True, slots=True)
class TimerReport:
    """The result of one timer check: the due run and its outcome; None if no run was due or it ran elsewhere."""

    due: DueRun | None = None
    run: HostStatisticsRun | None = None


def due_run(
    *, last_full_at: Instant | None, last_at: Instant | None, now: Instant, settings: RankingSettings
) -> DueRun | None:
    """Return the run that is due; a project never ranked is due immediately. An interval of 0 disables a run. Pure.

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
    """Starts runs when they are due. Runs by other processes and cron jobs count. Periodic task; one per cluster."""

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
        self._tried_s: Seconds | None = None  # monotonic time

    async def run_once(self) -> TimerReport:
        """Check the timer once, and start the run that is due."""
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


@dataclass(frozen=True, slots=True)
class HostStatisticsServices:
    statistics: HostStatistics
    timer: Timer  # used in the background process


def build(ports: HostStatisticsPorts, settings: Callable[[], RankingSettings], clock: Clock) -> HostStatisticsServices:
    """Return the statistics and their timer. `settings()` returns the current settings."""
    statistics = HostStatistics(ports, clock)
    return HostStatisticsServices(statistics, Timer(statistics, ports.generations, clock, settings))
