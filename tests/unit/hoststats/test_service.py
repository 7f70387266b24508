"""A full ranking once a day and cut points in between, also counting runs of other processes."""

from __future__ import annotations

import pytest

from domain.catalogue import Catalogue
from domain.settings import RankingSettings
from domain.units import Instant, Seconds, later
from hoststats.ports import HostStatisticsPorts
from hoststats.service import TRY_AGAIN_S, DueRun, Timer, TimerReport, build, due_run
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock

HOUR_S, DAY_S = 3600.0, 86400.0
SETTINGS = RankingSettings()


@pytest.mark.parametrize(
    ("full_ago_s", "any_ago_s", "due"),
    [
        (None, None, DueRun.FULL),
        (DAY_S, 60.0, DueRun.FULL),
        (DAY_S - 1, HOUR_S, DueRun.CUT_POINTS),
        (DAY_S - 1, HOUR_S - 1, None),
        (None, 60.0, DueRun.FULL),
    ],
    ids=["never ranked", "a day ago", "an hour ago", "just now", "only cut points so far"],
)
def test_what_is_due(full_ago_s: float | None, any_ago_s: float | None, due: DueRun | None) -> None:
    full_at, any_at = (None if ago is None else later(NOW, -ago) for ago in (full_ago_s, any_ago_s))

    assert due_run(last_full_at=full_at, last_at=any_at, now=NOW, settings=SETTINGS) is due


def test_an_interval_of_nothing_switches_its_run_off() -> None:
    cron_alone = RankingSettings(run_interval_s=Seconds(0.0))
    nothing = RankingSettings(run_interval_s=Seconds(0.0), refresh_interval_s=Seconds(0.0))

    assert due_run(last_full_at=None, last_at=None, now=NOW, settings=cron_alone) is DueRun.CUT_POINTS
    assert due_run(last_full_at=None, last_at=None, now=NOW, settings=nothing) is None


def a_timer(store: MemoryStore, clock: HandClock) -> Timer:
    return build(
        HostStatisticsPorts(store.applications, store.hav_tables, store.generations), lambda: SETTINGS, clock
    ).timer


async def test_a_day_has_one_full_ranking_and_an_hourly_refresh() -> None:
    store, clock = MemoryStore(), HandClock()
    timer = a_timer(store, clock)

    for _ in range(2 * 24 * 6):
        await timer.run_once()
        clock.time = later(clock.time, HOUR_S / 6)

    runs = await store.generations.runs(1000)
    assert [run.full for run in runs].count(True) == 2
    assert len(runs) == 48


async def test_a_run_by_cron_counts() -> None:
    store, clock = MemoryStore(), HandClock()
    ports = HostStatisticsPorts(store.applications, store.hav_tables, store.generations)
    await build(ports, lambda: SETTINGS, clock).statistics.run()

    assert await a_timer(store, clock).run_once() == TimerReport()


async def test_while_another_runs_the_timer_has_no_run() -> None:
    store = MemoryStore()
    async with store.generations.new(now=NOW, full=True):
        report = await a_timer(store, HandClock()).run_once()

    assert report == TimerReport(DueRun.FULL, None)


class BrokenCatalogues:
    """A catalogue source that fails, and counts its calls."""

    def __init__(self) -> None:
        self.asked = 0

    async def load_catalogue(self) -> Catalogue:
        self.asked += 1
        raise RuntimeError("no catalogue")


async def test_timer_pauses_after_a_failed_run() -> None:
    store, clock, broken = MemoryStore(), HandClock(), BrokenCatalogues()
    timer = build(HostStatisticsPorts(broken, store.hav_tables, store.generations), lambda: SETTINGS, clock).timer
    with pytest.raises(RuntimeError):
        await timer.run_once()

    clock.time = Instant(clock.time + TRY_AGAIN_S - 1)
    assert await timer.run_once() == TimerReport()
    clock.time = Instant(clock.time + 1)
    with pytest.raises(RuntimeError):
        await timer.run_once()

    assert broken.asked == 2
