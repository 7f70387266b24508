from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from domain.units import InstanceId
from feeder.revalidation import MOST_RECHECKED
from tests.unit.feeder.fakes import FakeWaiting, a_few_turns
from tests.unit.feeder.rig import Rig


class SlowWaiting(FakeWaiting):
    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]:
        found = await super().still_unsent(instance_ids)
        await a_few_turns()
        return found


async def filled(jobs: int) -> Rig:
    rig = Rig(slots=1000, database=SlowWaiting())
    rig.database.add_batch(1)
    rig.database.add_jobs(1, jobs)
    await rig.refill()
    return rig


async def test_gone_slots_at_the_head_of_a_group_leave() -> None:
    rig = await filled(30)
    slots = rig.slots()
    for slot in slots[:24]:
        del rig.database.unsent[slot.instance_id]
    await rig.array.recheck([slots[0]])
    assert rig.slots() == slots[24:]


async def test_a_recheck_that_finds_nothing_gone_changes_nothing() -> None:
    rig = await filled(30)
    slots = rig.slots()
    await rig.array.recheck([slots[0]])
    assert rig.slots() == slots


async def test_a_recheck_asks_about_a_bounded_number_of_slots() -> None:
    rig = await filled(900)
    slots = rig.slots()
    rig.database.unsent.clear()
    await rig.array.recheck(slots[:5])
    assert rig.slots() == slots[MOST_RECHECKED:]


async def test_groups_without_slots_are_not_revalidated() -> None:
    rig = await filled(1)
    [slot] = rig.slots()
    rig.send(slot)
    rig.database.calls.clear()
    await rig.array.recheck([slot])
    assert rig.database.calls == []


async def test_a_crowd_that_lost_together_asks_once() -> None:
    rig = await filled(900)
    slots = rig.slots()
    for slot in slots[:24]:
        del rig.database.unsent[slot.instance_id]
    rig.database.calls.clear()
    await asyncio.gather(*(rig.array.recheck([slots[number]]) for number in range(5)))
    assert rig.database.calls == ["still_unsent"]
    assert rig.slots() == slots[24:]
