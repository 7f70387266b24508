from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from domain.batches import Batch
from domain.errors import MusterError
from tests.unit.feeder.fakes import FakeWaiting, a_few_turns
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


async def test_an_emptied_array_is_refilled_at_once() -> None:
    rig = Rig(slots=10)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 100)
    task = asyncio.create_task(rig.feeder.run())
    await a_few_turns()
    for slot in rig.slots():
        rig.send(slot)
    await a_few_turns()
    assert len(rig.array) == 10
    await stop(task)


@dataclass
class BrokenWaiting(FakeWaiting):
    """Raises until it is repaired."""

    broken: bool = True

    async def ready_batches(self, limit: int) -> Sequence[Batch]:
        if self.broken:
            raise MusterError("the database is away")
        return await super().ready_batches(limit)


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
