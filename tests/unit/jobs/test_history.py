"""Ended work is moved a part at a time, with rests, and looked at again from the start when all was seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.history import START, JobPlace, MovedJobs
from domain.settings import StorageSettings
from domain.units import BatchId, Instant, JobId, Seconds, later
from jobs.history import REST, HistoryMover
from tests.builders import NOW
from tests.unit.jobs.projects import HandClock


class SlowWork:
    """Answers with `steps` in turn, each after two seconds; remembers what it was asked."""

    def __init__(self, clock: HandClock, steps: Sequence[MovedJobs | Exception]) -> None:
        self._clock = clock
        self._steps = list(steps)
        self.asked: list[tuple[Instant, JobPlace, int]] = []

    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        self.asked.append((before, after, limit))
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        await self._clock.sleep(2.0)
        return step


def a_mover(*steps: MovedJobs | Exception, keep_s: float = 100.0) -> tuple[HistoryMover, SlowWork, HandClock]:
    clock = HandClock()
    work = SlowWork(clock, steps)
    return HistoryMover(work, clock, lambda: StorageSettings(keep_ended_s=Seconds(keep_s)), limit=7), work, clock


PLACE = JobPlace(BatchId(3), JobId(41))


async def test_what_ended_before_the_time_it_is_kept_is_moved() -> None:
    mover, work, _ = a_mover(MovedJobs())

    await mover.run_once()

    assert work.asked == [(later(NOW, -100.0), START, 7)]


async def test_a_step_goes_on_where_the_last_one_ended_and_starts_over_when_all_was_seen() -> None:
    mover, work, _ = a_mover(MovedJobs(5, 6, PLACE, more=True), MovedJobs(), MovedJobs())

    reports = [await mover.run_once() for _ in range(3)]

    assert [report.more for report in reports] == [True, False, False]
    assert [after for _, after, _ in work.asked] == [START, PLACE, START]


async def test_it_rests_longer_than_it_works_while_there_is_more() -> None:
    mover, _, clock = a_mover(MovedJobs(5, 6, PLACE, more=True), MovedJobs())

    await mover.run_once()
    assert clock.time == NOW + 2.0 + REST * 2.0
    await mover.run_once()
    assert clock.time == NOW + 4.0 + REST * 2.0


async def test_a_step_that_failed_is_tried_again_from_the_same_place() -> None:
    mover, work, _ = a_mover(MovedJobs(5, 6, PLACE, more=True), OSError("no"), MovedJobs())

    await mover.run_once()
    with pytest.raises(OSError, match="no"):
        await mover.run_once()
    await mover.run_once()

    assert [after for _, after, _ in work.asked] == [START, PLACE, PLACE]
