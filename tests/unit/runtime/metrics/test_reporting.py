"""A process measures itself, and others find it on the board."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from structlog.testing import capture_logs

from domain.units import Instant
from runtime.metrics.board import FolderBoard, OwnBoard
from runtime.metrics.catalogue import CLOCK_OFFSET, JOBS_SENT, LOOP_LAG
from runtime.metrics.kinds import Sample
from runtime.metrics.readings import together
from runtime.metrics.reporter import REPORT_EVERY_S, Reporter
from tests.builders import NOW
from tests.unit.administration.clocks import HastyClock, StillClock


def sending(n: int) -> Iterable[Sample]:
    return [JOBS_SENT.of(value=n)]


def broken() -> Iterable[Sample]:
    raise ValueError("no idea")


def test_processes_meet_in_a_folder(tmp_path: Path) -> None:
    for name, sent in (("worker 0", 2), ("worker 1", 3)):
        Reporter(name, FolderBoard(tmp_path), [lambda n=sent: sending(n)], StillClock()).report_once()  # type: ignore[misc]

    found = FolderBoard(tmp_path).all()

    assert [one.process for one in found] == ["worker 0", "worker 1"]
    assert together(found, NOW)[JOBS_SENT] == {(): (5.0,)}


def test_a_process_started_anew_counts_on_from_its_file(tmp_path: Path) -> None:
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


def test_a_source_that_breaks_is_logged_and_the_others_are_told() -> None:
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
