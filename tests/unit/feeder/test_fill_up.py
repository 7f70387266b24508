"""Fill-ups replace the slots taken and read nothing else."""

from __future__ import annotations

import pytest

from domain.batches import QoS
from domain.units import shard_of
from feeder.partitions import MOST_CHANGED
from tests.unit.feeder.rig import Rig


async def a_full_rig(*, slots: int = 100, batches: int = 3, jobs: int = 1000) -> Rig:
    rig = Rig(slots=slots)
    for number in range(1, batches + 1):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, jobs)
    await rig.refill()
    rig.database.calls.clear()
    rig.database.rows_read = 0
    return rig


async def test_filling_up_reads_about_what_was_taken_and_nothing_else() -> None:
    rig = await a_full_rig()
    for slot in rig.slots()[:25]:
        rig.send(slot)
    done = await rig.fill_up()
    assert (done.placed, done.found_nothing, len(rig.array)) == (25, False, 100)
    assert rig.database.calls == ["fresh"]
    assert rig.database.rows_read <= 35


async def test_filling_up_keeps_the_order_of_the_batches() -> None:
    rig = await a_full_rig()
    for slot in rig.slots()[:25]:
        assert slot.batch_id == 1
        rig.send(slot)
    await rig.fill_up()
    assert rig.per_batch() == {1: 50, 2: 50}


async def test_fill_ups_after_one_full_refill_deliver_everything() -> None:
    rig = await a_full_rig(jobs=300)
    submitted = set(rig.database.unsent)
    for _ in range(60):
        for slot in rig.slots()[:40]:
            rig.send(slot)
        await rig.fill_up()
        rig.clock.pass_s(0.1)
    assert rig.offered == submitted
    assert rig.database.rows_read <= 2 * len(submitted)


async def test_where_a_batch_ends_the_next_takes_its_place() -> None:
    rig = await a_full_rig(jobs=60)
    for _ in range(2):
        for slot in rig.slots()[:50]:
            rig.send(slot)
        await rig.fill_up()
    assert set(rig.per_batch()) == {2, 3}


async def test_fill_up_reports_that_nothing_is_left() -> None:
    rig = await a_full_rig(batches=1, jobs=50)
    for slot in rig.slots()[:20]:
        rig.send(slot)
    done = await rig.fill_up()
    assert (done.placed, done.found_nothing) == (0, True)


async def test_new_batches_and_retries_appear_at_the_next_refill() -> None:
    rig = await a_full_rig()
    rig.database.add_batch(9, order_key=0.5)
    rig.database.add_jobs(9, 5)
    [retry] = rig.database.add_jobs(1, 1, retries=1)
    await rig.fill_up()
    assert rig.per_batch() == {1: 50, 2: 50}
    await rig.refill()
    assert rig.per_batch()[9] == 5
    assert retry.instance_id in rig.ids()


async def test_filling_up_goes_on_with_retries_that_were_not_all_read() -> None:
    rig = Rig(slots=400)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 300, retries=1)
    rig.database.add_jobs(1, 1000)
    await rig.refill()
    assert sum(slot.urgent for slot in rig.slots()) == 64
    await rig.fill_up()
    assert sum(slot.urgent for slot in rig.slots()) == 128


async def test_shards_that_moved_make_it_a_whole_refill() -> None:
    rig = await a_full_rig()
    rig.shards.shards = frozenset(range(32))
    await rig.fill_up()
    assert "ready_batches" in rig.database.calls
    assert all(shard_of(slot.job_id) < 32 for slot in rig.slots())


@pytest.mark.parametrize("jobs", [10, 60, 200])
async def test_a_remainder_that_was_read_is_not_read_again(jobs: int) -> None:
    rig = await a_full_rig(slots=400, batches=1, jobs=jobs)
    for _ in range(4):
        for slot in rig.slots()[: jobs // 10]:
            rig.send(slot)
        await rig.refill()
        await rig.fill_up()
    assert rig.database.rows_read == 0


async def test_extended_tail_is_reread_by_the_next_full_refill() -> None:
    rig = await a_full_rig(slots=400, batches=1, jobs=60)
    [added] = rig.database.add_jobs(1, 1)
    await rig.refill()
    assert added.instance_id in rig.ids()


async def test_few_slots_of_a_longer_tail_are_read_separately() -> None:
    rig = await a_full_rig(slots=100, batches=2, jobs=90)
    assert rig.per_batch() == {1: 50, 2: 50}
    for slot in rig.slots()[:5]:
        rig.send(slot)
    await rig.fill_up()
    assert len(rig.ids()) == 100
    assert rig.database.rows_read <= 20


async def test_of_gated_work_the_own_shards_are_read_first() -> None:
    rig = Rig(slots=100)
    rig.shards.shards = frozenset(range(32, 64))
    rig.database.add_batch(1, qos=QoS.AFAP)
    rig.database.add_jobs(1, 1000)
    await rig.refill()
    for _ in range(4):
        assert all(shard_of(slot.job_id) >= 32 for slot in rig.slots())
        for slot in rig.slots()[:100]:
            rig.send(slot)
        await rig.fill_up()
    await rig.fill_up()
    for _ in range(20):
        for slot in rig.slots():
            rig.send(slot)
        await rig.fill_up()
    assert not rig.database.unsent


async def test_large_array_is_filled_in_parts_and_low_until_full() -> None:
    rig = Rig(slots=2500)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 4000)
    await rig.refill()
    assert (len(rig.array), rig.array.level.low.is_set()) == (MOST_CHANGED, True)
    await rig.fill_up()
    assert (len(rig.array), rig.array.level.low.is_set()) == (2 * MOST_CHANGED, True)
    await rig.fill_up()
    assert (len(rig.array), rig.array.level.low.is_set()) == (2500, False)


async def test_earlier_batch_enters_a_full_large_array_in_parts() -> None:
    """Replacing a slot blocks requests as long as placing one."""
    rig = Rig(slots=3000)
    rig.database.add_batch(2)
    rig.database.add_jobs(2, 9000)
    for _ in range(3):
        await rig.refill()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 9000)

    done = await rig.refill()
    assert (done.placed, done.dropped) == (MOST_CHANGED // 2, MOST_CHANGED // 2)
    for _ in range(2):
        assert rig.array.level.low.is_set()
        done = await rig.fill_up()
        assert (done.placed, done.dropped) == (MOST_CHANGED // 2, MOST_CHANGED // 2)
    assert rig.per_batch() == {1: 1500, 2: 1500}
    done = await rig.fill_up()
    assert (done.placed, done.dropped, rig.array.level.low.is_set()) == (0, 0, False)


async def test_large_array_that_lost_half_its_slots_keeps_the_rest() -> None:
    rig = Rig(slots=3000)
    for number in (1, 2):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 9000)
    for _ in range(3):
        await rig.refill()
    for slot in [slot for slot in rig.slots() if slot.batch_id == 1]:
        rig.send(slot)

    done = await rig.fill_up()

    assert (done.placed, done.dropped) == (MOST_CHANGED, 0)
    assert rig.per_batch() == {1: MOST_CHANGED, 2: 1500}


async def test_retries_not_placed_at_once_are_read_again() -> None:
    rig = Rig(slots=6000)
    for number in range(1, 31):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 60, retries=1)
        rig.database.add_jobs(number, 100)
    await rig.refill()
    for _ in range(9):
        await rig.fill_up()
    assert sum(slot.urgent for slot in rig.slots()) == 30 * 60


async def test_a_large_array_with_little_to_hold_is_not_low() -> None:
    rig = Rig(slots=2500)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    assert (len(rig.array), rig.array.level.low.is_set()) == (40, False)


async def test_a_part_of_a_large_array_is_what_the_whole_begins_with() -> None:
    rig = await a_full_rig(slots=2500, batches=3, jobs=2000)
    held = set(rig.ids())
    while len(rig.array) < 2500:
        await rig.fill_up()
        assert held <= set(rig.ids())
        held = set(rig.ids())
    whole = await a_full_rig(slots=2500, batches=3, jobs=2000)
    await whole.refill(times=3)
    assert rig.per_batch() == whole.per_batch()
