from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from domain.batches import Batch
from domain.errors import MusterError
from domain.jobs import Candidate, FreshRange
from domain.units import AppId
from feeder.service import LEAST_GAP_S
from tests.unit.feeder.fakes import FakeWaiting, StillClock, a_few_turns
from tests.unit.feeder.rig import Rig


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_loop_refills_when_the_interval_has_passed() -> None:
    rig = Rig()
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 5)
    rig.clock.pass_s(0.5)
    await a_few_turns()
    assert len(rig.array) == 0
    rig.clock.pass_s(0.6)
    await a_few_turns()
    assert len(rig.array) == 5
    await stop(task)


async def test_a_low_array_is_filled_up_before_the_interval_has_passed() -> None:
    rig = Rig(slots=100)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 1000)
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    rig.clock.pass_s(LEAST_GAP_S)
    for slot in rig.slots()[:24]:
        rig.send(slot)
    await a_few_turns()
    assert len(rig.array) == 76
    rig.send(rig.slots()[0])
    await a_few_turns()
    assert len(rig.array) == 100
    await stop(task)


async def test_refills_keep_a_minimum_gap_under_load() -> None:
    rig = Rig(slots=10)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 1000)
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    for _ in range(9):
        for slot in rig.slots():
            rig.send(slot)
        await a_few_turns()
        assert len(rig.array) == 0
        rig.clock.pass_s(LEAST_GAP_S)
        await a_few_turns()
        assert len(rig.array) == 10
    assert rig.database.calls.count("fresh") == 10
    await stop(task)


async def test_no_fill_up_follows_one_that_found_nothing() -> None:
    rig = Rig(slots=40)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 30)
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    for slot in rig.slots():
        rig.send(slot)
        rig.clock.pass_s(LEAST_GAP_S)
        await a_few_turns()
    assert rig.feeder.last is not None
    assert rig.feeder.last.found_nothing
    assert rig.database.calls.count("ready_batches") == 1
    assert len(rig.database.calls) <= 6
    rig.database.add_jobs(1, 5)
    rig.clock.pass_s(0.5)
    await a_few_turns()
    assert len(rig.array) == 5
    await stop(task)


@dataclass
class BrokenWaiting(FakeWaiting):
    """Raises until `broken` is reset."""

    broken: bool = True

    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        if self.broken:
            raise MusterError("the database is away")
        return await super().ready_batches(limit, apps)


@dataclass
class SlowWaiting(FakeWaiting):
    """Answers on demand; counts concurrent callers."""

    let: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    most_waiting: int = 0

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        self.waiting += 1
        self.most_waiting = max(self.waiting, self.most_waiting)
        await self.let.wait()
        self.waiting -= 1
        return await super().fresh(ranges)


async def test_there_are_never_two_refills_at_once() -> None:
    database = SlowWaiting()
    rig = Rig(slots=10, database=database)
    database.add_batch(1)
    database.add_jobs(1, 1000)
    database.let.set()
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    database.let.clear()
    for slot in rig.slots():
        rig.send(slot)
    for _ in range(20):
        rig.clock.pass_s(0.3)
        await a_few_turns()
    assert database.most_waiting == database.waiting == 1
    database.let.set()
    await a_few_turns()
    assert len(rig.array) == 10
    await stop(task)


async def test_a_failed_refill_is_counted_and_the_next_one_succeeds() -> None:
    database = BrokenWaiting()
    rig = Rig(database=database)
    database.add_batch(1)
    database.add_jobs(1, 5)
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    assert (rig.feeder.failures, rig.feeder.last) == (1, None)
    database.broken = False
    rig.clock.pass_s(1.1)
    await a_few_turns()
    assert len(rig.array) == 5
    await stop(task)


@dataclass
class DistantWaiting(FakeWaiting):
    """Answers with a delay."""

    clock: StillClock = field(default_factory=StillClock)

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        found = await super().fresh(ranges)
        await self.clock.sleep(0.05)
        return found


async def test_array_losing_three_slots_per_ms_does_not_run_empty() -> None:
    database = DistantWaiting()
    rig = Rig(slots=1000, database=database)
    database.clock = rig.clock
    for number in (1, 2, 3, 4):
        database.add_batch(number)
        database.add_jobs(number, 2000)
    task = asyncio.create_task(rig.feeder.run())
    for _ in range(10):
        rig.clock.pass_s(0.01)
        await a_few_turns()
    left = []
    for _ in range(80):
        for slot in rig.slots()[:32]:
            rig.send(slot)
        rig.clock.pass_s(0.01)
        await a_few_turns()
        left.append(len(rig.array))
    assert min(left) > 300
    await stop(task)
