"""Metrics of processes."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from administration.attention.service import AttentionViews
from domain.dispatch import TrickleFate
from domain.errors import UnavailableError
from domain.ranking import HostStatisticsRun
from domain.refusals import RefusalCode
from domain.settings import Settings
from domain.units import Instant, Seconds, later
from runtime.counters import RefillCounters, RequestCounters
from runtime.logs import PageCounters
from runtime.metrics import catalogue as metric
from runtime.metrics import sources
from runtime.metrics.catalogue import CLOCK_OFFSET, JOBS_SENT, LOOP_LAG, Metric, MetricSample, Value
from runtime.metrics.cluster import KEPT_S, Cluster
from runtime.metrics.metrics_store import FolderBoard, OwnBoard, reading, together
from runtime.metrics.sources import REPORT_EVERY_S, Reporter
from runtime.periodic_tasks import PeriodicTask
from store.postgres import DatabaseFigures, GroupFigures, PoolFigures, PostgresStore
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.unit.administration.clocks import HastyClock, StillClock
from tests.unit.jobs.projects import HandClock
from tests.unit.runtime.test_counters import a_refill
from tests.worlds import a_submitted_batch

Found = Mapping[Metric, Mapping[tuple[str, ...], Value]]


def found(*samples: object) -> Found:
    return together([reading("worker 0", NOW, samples, {})], NOW)  # type: ignore[arg-type]  # checked where they are made


def test_requests_count_by_status_and_refusals_by_code() -> None:
    counters = RequestCounters(StillClock())
    for took_s in (0.002, 0.002, 30.0):
        refusals = {RefusalCode.TOO_SLOW: 2}
        counters.request_answered(sent=1, resent=0, reports=4, refusals=refusals, took_s=Seconds(took_s))
    counters.request_failed(503)
    counters.trickles_taken({TrickleFate.KEPT: 3, TrickleFate.TOO_LARGE: 1})

    told = found(*sources.of_requests(counters))

    assert told[metric.REQUESTS] == {("200",): (3.0,), ("503",): (1.0,)}
    assert (told[metric.JOBS_SENT][()], told[metric.RESULTS_REPORTED][()]) == ((3.0,), (12.0,))
    assert told[metric.REFUSALS] == {(RefusalCode.TOO_SLOW.value,): (6.0,)}
    assert told[metric.TRICKLES] == {("kept",): (3.0,), ("too_large",): (1.0,)}
    assert told[metric.REQUEST_SECONDS][()] == (0.0, 2.0, *[0.0] * 11, 1.0, 30.004)


def test_refills_are_reported_with_their_age() -> None:
    refill = a_refill(0.3, placed=7)
    counters = RefillCounters(lambda: refill, StillClock())
    counters.look()
    counters.look()  # the same one

    class Fed:
        last, failures = refill, 2

    told = found(*sources.of_refills(Fed(), counters, later(NOW, 4.0)))  # type: ignore[arg-type]  # as much of a feeder as is looked at

    assert [told[one][()] for one in (metric.REFILLS, metric.REFILLED, metric.REFILL_FAILURES)] == [
        (1.0,),
        (7.0,),
        (2.0,),
    ]
    assert told[metric.REFILL_AGE][()] == (4.0,)
    assert told[metric.REFILL_SECONDS][()][-1] == 0.3


async def test_a_duty_tells_when_it_was_done_and_whose_it_is() -> None:
    class Locks:
        async def mine(self, duty: str) -> bool:
            return duty != "another node's"

        async def give_up(self, duty: str) -> None: ...

        def fence(self, duty: str) -> AbstractContextManager[None]:
            return nullcontext()

    async def nothing() -> None: ...

    duties = [
        PeriodicTask(name, nothing, locks=Locks(), clock=StillClock(), interval_s=lambda: 1.0)
        for name in ("sweeper", "another node's")
    ]
    for duty in duties:
        await duty.step()

    told = found(*sources.of_duties(duties))

    assert told[metric.DUTY_MINE] == {("sweeper",): (1.0,), ("another node's",): (0.0,)}
    assert told[metric.DUTY_RUNS] == {("sweeper",): (1.0,), ("another node's",): (0.0,)}
    assert told[metric.DUTY_LAST] == {("sweeper",): (NOW,)}


class Figures:
    def pool(self) -> PoolFigures:
        return PoolFigures(idle=1, connections=3, most=10, calls=99)

    def groups(self) -> Mapping[str, GroupFigures]:
        return {"read": GroupFigures(Counter({1: 5, 3: 2, 64: 1}), waiting=4, connections=2)}

    async def database(self, now: Instant) -> DatabaseFigures:
        return DatabaseFigures(8_000_000, Seconds(2.5), {"idle": 3, "active": 1})


def test_connections_and_groups_are_reported() -> None:
    told = found(*sources.of_store(Figures()))  # type: ignore[arg-type]  # as much of it as is looked at

    assert told[metric.POOL] == {("idle",): (1.0,), ("busy",): (2.0,)}
    assert told[metric.GROUPS] == {("read",): (5.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0, 75.0)}
    assert told[metric.GROUP_WAITING] == {("read",): (4.0,)}


def test_pages_are_counted_by_area() -> None:
    pages = PageCounters()
    pages.note("api", 201, 0.5)
    pages.note("api", 404, 0.25, "batch")
    pages.note("console", 200, 0.004, "batches")
    pages.note("console", 404, 0.004)

    told = found(*sources.of_pages(pages))

    assert told[metric.PAGES][("api", "2xx")] == told[metric.PAGES][("api", "4xx")] == (1.0,)
    assert told[metric.PAGE_SECONDS] == {("api",): (0.75,), ("console",): (0.008,)}
    assert told[metric.CONSOLE_SECONDS] == {("batches",): (0.0, 0.0, 1.0, *(11 * (0.0,)), 0.004)}


def test_a_process_knows_its_memory_and_its_time() -> None:
    told = found(*sources.of_process(NOW, "1.2")())

    assert told[metric.BUILD] == {("1.2",): (1.0,)}
    assert told[metric.MEMORY][("worker 0",)][0] > 10_000_000
    assert told[metric.CPU][("worker 0",)][0] > 0.0


class Project(Figures):
    """The ports for the project's metrics; `away`: the database is unavailable."""

    def __init__(self, clock: StillClock) -> None:
        self.store, self.clock, self.away = MemoryStore(), clock, False

    def cluster(self) -> Cluster:
        store = self.store
        names = ("insight", "listings", "forecasts", "attention", "views", "process_reports", "applications", "access")
        parts = {name: getattr(store, name) for name in (*names, "restrictions", "settings")}
        known = cast(PostgresStore, SimpleNamespace(**parts, generations=self, figures=self))
        return Cluster(known, AttentionViews(known, Settings, self.clock), self.clock)

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        refresh = HostStatisticsRun(2, full=False, started_at=NOW, seconds=Seconds(0.5))
        full = HostStatisticsRun(1, full=True, started_at=later(NOW, -600.0), seconds=Seconds(2.5))
        return [refresh, full]

    async def database(self, now: Instant) -> DatabaseFigures:
        if self.away:
            raise UnavailableError("gone")
        return await super().database(now)

    async def web_sessions(self, now: Instant) -> Mapping[str, int]:
        return {"people": 2, "volunteers": 40}


async def test_unsent_work_and_last_ranking_are_reported() -> None:
    project = Project(StillClock())
    batch = await a_submitted_batch(project.store, jobs=3)
    cluster = project.cluster()

    await cluster.ask_once()

    told = found(*cluster.samples())
    assert told[metric.QUEUED] == {("pi", "throughput"): (3.0,)}
    assert told[metric.BATCH_UNSENT] == {(str(batch.batch_id),): (3.0,)}
    assert (told[metric.RANKING_AGE][()], told[metric.RANKING_SECONDS][()]) == ((600.0,), (2.5,))
    assert told[metric.ACTIVE_BATCHES] == {("pi",): (1.0,)}
    assert told[metric.DATABASE_SESSIONS] == {("idle",): (3.0,), ("active",): (1.0,)}
    assert told[metric.WEB_SESSIONS] == {("people",): (2.0,), ("volunteers",): (40.0,)}
    assert told[metric.DATABASE_UP] == {("worker 0",): (1.0,)}


async def test_without_a_database_the_last_answers_serve_for_a_minute() -> None:
    clock = HandClock()
    project = Project(clock)  # type: ignore[arg-type]  # a clock, too
    await a_submitted_batch(project.store, jobs=3)
    cluster = project.cluster()
    await cluster.ask_once()
    project.away = True
    clock.time = later(NOW, KEPT_S)

    with capture_logs():
        await cluster.ask_once()
    then = found(*cluster.samples())
    clock.time = later(NOW, 2 * KEPT_S + 1.0)

    assert then[metric.DATABASE_UP] == {("worker 0",): (0.0,)}
    assert then[metric.DATABASE_BYTES] == {(): (8_000_000.0,)}
    assert found(*cluster.samples()).keys() == {metric.DATABASE_UP}


@pytest.mark.parametrize("name", [name for name, value in vars(metric).items() if isinstance(value, Metric)])
def test_every_metric_has_a_source(name: str) -> None:
    folder = Path(sources.__file__).parent

    assert any(
        re.search(rf"\b{name}\.(of|counted)\(|[(,] *\(?metric\.{name},", path.read_text())
        for path in folder.glob("*.py")
    )


def sending(n: int) -> Iterable[MetricSample]:
    return [JOBS_SENT.of(value=n)]


def broken() -> Iterable[MetricSample]:
    raise ValueError("no idea")


def test_processes_meet_in_a_folder(tmp_path: Path) -> None:
    for name, sent in (("worker 0", 2), ("worker 1", 3)):
        Reporter(name, FolderBoard(tmp_path), [lambda n=sent: sending(n)], StillClock()).report_once()  # type: ignore[misc]

    found = FolderBoard(tmp_path).all()

    assert [one.process for one in found] == ["worker 0", "worker 1"]
    assert together(found, NOW)[JOBS_SENT] == {(): (5.0,)}


def test_restarted_process_continues_from_its_file(tmp_path: Path) -> None:
    Reporter("worker 0", FolderBoard(tmp_path), [lambda: sending(7)], StillClock()).report_once()

    again = Reporter("worker 0", FolderBoard(tmp_path), [lambda: sending(1)], StillClock())

    assert together([again.report_once()], NOW)[JOBS_SENT] == {(): (8.0,)}


def test_a_file_that_is_no_reading_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "worker-0.json").write_text("half a fi")
    (tmp_path / "worker-1.new").write_text("[]")

    assert list(FolderBoard(tmp_path).all()) == []
    assert FolderBoard(tmp_path).last("worker 0") is None


def test_a_folder_that_is_gone_is_logged_and_no_reason_to_stop(tmp_path: Path) -> None:
    with capture_logs() as lines:
        Reporter("worker 0", FolderBoard(tmp_path / "gone"), [], StillClock()).report_once()

    assert [line["event"] for line in lines] == ["measurements not written"]


def test_failing_source_is_logged_and_skipped() -> None:
    with capture_logs() as lines:
        taken = Reporter("worker 0", OwnBoard(), [broken, lambda: sending(1)], StillClock()).report_once()

    assert [line["event"] for line in lines] == ["not measured"]
    assert together([taken], NOW)[JOBS_SENT] == {(): (1.0,)}


async def test_it_measures_again_and_again_and_once_more_in_the_end() -> None:
    clock, board = HastyClock(rounds=3), OwnBoard()
    offsets = iter([0.25, 0.5, 0.75, 1.0, 2.0])
    reporter = Reporter("worker 0", board, [lambda: [CLOCK_OFFSET.of(value=next(offsets))]], clock)

    task = asyncio.create_task(reporter.run())
    await clock.done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert set(clock.sleeps) == {REPORT_EVERY_S}
    assert together(board.all(), clock.now())[CLOCK_OFFSET] == {("worker 0",): (2.0,)}


class LateClock(HastyClock):
    """Every sleep lasts half a second too long."""

    async def sleep(self, duration_s: float) -> None:
        await super().sleep(duration_s)
        self.time = Instant(self.time + 0.5)


async def test_a_process_that_comes_late_says_so() -> None:
    clock, board = LateClock(rounds=2), OwnBoard()
    task = asyncio.create_task(Reporter("worker 0", board, [], clock).run())
    await clock.done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert together(board.all(), clock.now())[LOOP_LAG] == {("worker 0",): (0.5,)}
