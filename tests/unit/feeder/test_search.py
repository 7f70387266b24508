from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from domain.apps import CPU, NVIDIA
from domain.batches import Batch
from domain.refusals import RefusalCode
from domain.units import AppId, HostId
from tests.unit.feeder.fakes import FakeWaiting, a_few_turns
from tests.unit.feeder.rig import Rig

CPU_WORK = [(AppId(1), CPU)]


class SlowWaiting(FakeWaiting):
    """Yields to other tasks before it answers."""

    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        await a_few_turns()
        return await super().ready_batches(limit, apps)


async def a_full_array(database: FakeWaiting | None = None) -> Rig:
    """A hundred slots of two batches, and a third batch that did not fit."""
    rig = Rig(slots=100, database=database)
    for number in (1, 2, 3):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 500)
    await rig.refill()
    assert rig.per_batch() == {1: 50, 2: 50}
    rig.database.calls.clear()
    return rig


async def test_work_the_array_has_no_room_for_is_added_for_the_moment() -> None:
    rig = await a_full_array()
    assert await rig.array.search(CPU_WORK, 5)
    assert rig.per_batch()[3] >= 1
    assert len(rig.ids()) == 105


async def test_a_search_adds_no_more_than_the_spare_room() -> None:
    rig = await a_full_array()
    assert await rig.array.search(CPU_WORK, 1000)
    assert len(rig.ids()) == 120
    rig.clock.pass_s(2.0)
    assert not await rig.array.search(CPU_WORK, 1000)


async def test_next_refill_drops_unused_search_results() -> None:
    rig = await a_full_array()
    await rig.array.search(CPU_WORK, 20)
    await rig.refill()
    assert len(rig.ids()) == 100


async def test_each_kind_of_job_has_its_turn_in_a_search() -> None:
    rig = await a_full_array()
    rig.database.add_batch(4)
    rig.database.add_jobs(4, 50, class_number=41)
    rig.database.add_jobs(4, 1, class_number=42)
    assert await rig.array.search(CPU_WORK, 100)
    assert {41, 42} <= {slot.job_class_id for slot in rig.slots()}


async def test_processor_types_without_versions_are_not_searched() -> None:
    rig = await a_full_array()
    assert not await rig.array.search([(AppId(1), NVIDIA)], 5)
    assert rig.database.calls == []


async def test_concurrent_empty_searches_query_once_per_second() -> None:
    rig = Rig()
    for _ in range(50):
        assert not await rig.array.search(CPU_WORK, 5)
    assert rig.database.calls == ["ready_batches"]
    rig.clock.pass_s(1.5)
    await rig.array.search(CPU_WORK, 5)
    assert rig.database.calls == ["ready_batches", "ready_batches"]


async def test_hosts_that_wait_for_the_same_search_share_what_it_found() -> None:
    rig = await a_full_array(SlowWaiting())
    found = await asyncio.gather(*(rig.array.search(CPU_WORK, 5) for _ in range(10)))
    assert found == [True] * 10
    assert rig.database.calls.count("ready_batches") == 1


async def test_caller_that_saw_the_result_gets_no_more_for_a_second() -> None:
    rig = await a_full_array()
    assert await rig.array.search(CPU_WORK, 5)
    rig.clock.pass_s(0.1)
    assert not await rig.array.search(CPU_WORK, 5)


async def test_once_what_was_added_is_gone_a_new_search_is_made() -> None:
    rig = await a_full_array()
    before = set(rig.ids())
    assert await rig.array.search(CPU_WORK, 5)
    for slot in rig.slots():
        if slot.instance_id not in before:
            rig.send(slot)
    assert await rig.array.search(CPU_WORK, 5)


async def test_group_in_back_off_is_found_by_a_suitable_host() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 2)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    for host in (1, 2):
        rig.array.note_refusals([(rig.array.groups()[0].key, RefusalCode.DISK)], HostId(host))
    await rig.refill()
    assert rig.ids() == []
    assert await rig.array.search(CPU_WORK, 8)
    assert len(rig.ids()) == 8
    rig.send(rig.slots()[0])
    await rig.refill()
    assert len(rig.ids()) == 39


async def test_without_shards_nothing_is_searched_for() -> None:
    rig = await a_full_array()
    rig.shards.shards = frozenset()
    assert not await rig.array.search(CPU_WORK, 5)
    assert rig.database.calls == []


async def test_search_reads_few_rows_of_each_of_many_batches() -> None:
    rig = Rig(slots=1000)
    for number in range(1, 41):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 100)
    assert await rig.array.search(CPU_WORK, 1000)
    assert len(rig.ids()) == 100
    assert rig.database.rows_read <= 600


async def test_a_search_adds_nothing_of_a_batch_that_a_limit_bounds() -> None:
    rig = Rig()
    rig.database.add_batch(1, sent_most=3)
    rig.database.add_jobs(1, 20)
    await rig.refill()
    assert not await rig.array.search(CPU_WORK, 10)
    assert rig.per_batch() == {1: 3}
