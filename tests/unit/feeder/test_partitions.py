"""Slots reserved for big jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.catalogue import Catalogue
from domain.jobs import Ready
from domain.refusals import RefusalCode
from domain.reservations import Kept, Reserved
from domain.units import AppId, BatchId, HostId
from feeder.partitions import Supply, with_kept
from feeder.service import build_feeder
from tests.builders import NOW
from tests.unit.feeder.fakes import FakeCatalogue, FakeShards, FakeWaiting, StillClock

BIG = BatchId(50)


@dataclass
class KeepingCatalogue(FakeCatalogue):
    kept: tuple[BatchId, ...] = ()

    def catalogue(self) -> Catalogue:
        reserved = Reserved({batch_id: Kept(batch_id, NOW) for batch_id in self.kept})
        return replace(super().catalogue(), reserved=reserved)


class World:
    """Forty batches of small jobs ahead of one of big jobs, and only a few slots."""

    def __init__(self, *kept: BatchId, slots: int = 20) -> None:
        self.waiting, self.clock = FakeWaiting(), StillClock()
        self.catalogue = KeepingCatalogue({1: (CPU,)}, kept=kept)
        self.catalogue.change("feeder.slots", slots)
        self.catalogue.change("feeder.refusals_to_rotate", 2)
        for number in range(1, 41):
            self.waiting.add_batch(number)
            self.waiting.add_jobs(number, 100)
        self.waiting.add_batch(BIG)
        self.waiting.add_jobs(BIG, 10)
        self.feeder = build_feeder(self.waiting, FakeShards(), self.catalogue, self.clock)

    async def big_slots(self) -> list[Ready]:
        await self.feeder.refill_once()
        groups = self.feeder.array.each_group()
        return [slot for group in groups if group.batch.batch_id == BIG for slot in group]

    def all_refuse(self) -> None:
        for group in self.feeder.array.groups():
            for host in (1, 2):
                self.feeder.array.note_refusals([(group.key, RefusalCode.CPUS)], HostId(host))


async def test_big_batch_has_a_slot_only_while_one_is_reserved() -> None:
    assert await World().big_slots() == []
    world = World(BIG)
    assert len(await world.big_slots()) == 1
    assert len(world.feeder.array) == 20
    assert len(await world.big_slots()) == 1


async def test_slot_no_longer_reserved_is_replaced() -> None:
    world = World(BIG)
    assert await world.big_slots()
    world.catalogue.kept = ()
    await world.big_slots()
    assert await world.big_slots() == []


async def test_a_kept_slot_that_all_hosts_refuse_stays_and_is_reported() -> None:
    world = World(BIG)
    await world.big_slots()
    world.all_refuse()

    assert len(await world.big_slots()) == 1
    world.clock.pass_s(301.0)
    rows = {row.batch_id: row for row in world.feeder.array.unrunnable()}
    assert not rows[BIG].rotated_out
    assert rows[BIG].codes == {RefusalCode.CPUS: 2}
    assert rows[BatchId(1)].rotated_out


async def test_reserving_a_slot_ends_the_batchs_back_off() -> None:
    world = World(BIG)
    await world.big_slots()
    world.all_refuse()
    world.catalogue.kept = ()
    assert await world.big_slots() == []
    world.catalogue.kept = (BIG,)

    await world.big_slots()

    assert len(await world.big_slots()) == 1


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Supply], dict[tuple[BatchId, bool], int], int]:
    sizes = draw(st.lists(st.integers(0, 50), min_size=1, max_size=8))
    supplies = [
        Supply(BatchId(n), AppId(1), urgent=urgent, gated=False, instances=size)
        for n, size in enumerate(sizes)
        for urgent in (True, False)
    ]
    planned = {one.part: draw(st.integers(0, one.instances)) for one in supplies}
    return supplies, planned, max(1, sum(planned.values()) + draw(st.integers(0, 3)))


@given(plans(), st.sets(st.integers(0, 9).map(BatchId)))
def test_keeping_slots_takes_no_more_than_there_are(
    world: tuple[list[Supply], dict[tuple[BatchId, bool], int], int], kept: set[BatchId]
) -> None:
    supplies, planned, slots = world

    made = with_kept(planned, supplies, kept, slots=slots)

    assert sum(made.values()) <= slots
    has = {batch_id for (batch_id, _), count in made.items() if count}
    supplied = {one.batch_id for one in supplies if one.instances}
    spare = slots - sum(planned.values()) + sum(count for (b, _), count in planned.items() if b not in kept)
    lacking = {b for b in kept & supplied if not planned[b, True] and not planned[b, False]}
    assert len(lacking - has) == max(0, len(lacking) - spare)
    for part, count in planned.items():
        assert made[part] <= count or part[0] in kept
        assert made[part] >= count or part[0] not in kept
