from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from domain.apps import CPU, NVIDIA
from domain.batches import QoS
from domain.errors import NotFoundError
from domain.jobs import JobClass
from domain.refusals import RefusalCode
from domain.settings import FeederSettings
from domain.units import (
    HOUR_S,
    AccountId,
    AppId,
    BatchId,
    HostId,
    Instant,
    JobClassId,
    SubmitterId,
    VolunteerId,
    shard_of,
)
from feeder.in_flight import IN_FLIGHT_S
from feeder.refill import MOST_BATCHES, URGENT_PER_BATCH
from tests.builders import NOW
from tests.unit.feeder.fakes import ALL_SHARDS, FakeWaiting
from tests.unit.feeder.rig import Rig


async def test_a_small_batch_is_wholly_in_the_array_in_order_of_id() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    added = rig.database.add_jobs(1, 30)
    done = await rig.refill()
    assert rig.ids() == [ready.instance_id for ready in added]
    assert (done.batches, done.placed, done.dropped, done.slots) == (1, 30, 0, 30)


async def test_a_large_batch_fills_the_array_from_its_smallest_ids() -> None:
    rig = Rig(slots=100)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 5000)
    await rig.refill()
    assert len(rig.ids()) == 100
    assert max(rig.ids()) <= 1000


async def test_the_plan_of_an_array_is_what_refills_then_place() -> None:
    rig = Rig(slots=100)
    for number, jobs in ((1, 10), (2, 500), (3, 500)):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, jobs)

    planned = await rig.feeder.plan_once()

    assert rig.ids() == []
    assert "fresh" not in rig.database.calls
    await rig.refill(2)  # the first may lack a slot or two, because shards differ in size
    assert {batch_id: count for (batch_id, _), count in planned.items() if count} == rig.per_batch()


async def test_refill_bounds_its_queries_and_rows() -> None:
    rig = Rig(slots=100)
    for number in range(1, 41):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 300)
    await rig.refill()
    assert sorted(rig.database.calls) == ["fresh", "job_classes", "ready_batches", "urgent"]
    assert rig.database.rows_read <= 200
    rig.database.calls.clear()
    rig.database.rows_read = 0
    await rig.refill()
    assert set(rig.database.calls) <= {"ready_batches", "still_unsent", "urgent"}
    assert rig.database.rows_read == 0


async def test_sent_jobs_are_not_read_again_and_the_rest_follows() -> None:
    rig = Rig(slots=50)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 400)
    sent = []
    for _ in range(40):
        await rig.refill()
        for slot in rig.slots()[:20]:
            rig.send(slot)
            sent.append(slot.instance_id)
    assert len(sent) == len(set(sent)) == 400
    assert rig.database.rows_read < 800


async def test_retry_comes_first_in_its_batch_after_earlier_batches() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_batch(2)
    (first,) = rig.database.add_jobs(1, 1)
    (second,) = rig.database.add_jobs(2, 1)
    (retry,) = rig.database.add_jobs(2, 1, retries=1)
    await rig.refill()
    assert rig.ids() == [first.instance_id, retry.instance_id, second.instance_id]


async def test_earlier_batch_takes_slots_and_nothing_is_lost() -> None:
    rig = Rig(slots=100)
    rig.database.add_batch(2)
    late = rig.database.add_jobs(2, 300)
    await rig.refill()
    assert rig.per_batch() == {2: 100}
    rig.database.add_batch(1)
    early = rig.database.add_jobs(1, 300)
    await rig.refill()
    assert rig.per_batch() == {1: 50, 2: 50}
    for _ in range(30):
        for slot in rig.slots():
            rig.send(slot)
        await rig.refill()
    assert rig.offered == {ready.instance_id for ready in early + late}


async def test_a_batch_alone_may_fill_the_array() -> None:
    rig = Rig(slots=100)
    rig.database.add_batch(1, qos=QoS.AFAP)
    rig.database.add_jobs(1, 1000)
    await rig.refill()
    assert rig.per_batch() == {1: 100}


async def test_gated_batches_leave_half_of_the_array_to_others() -> None:
    rig = Rig(slots=100)
    for number in (1, 2, 3):
        rig.database.add_batch(number, qos=QoS.AFAP)
        rig.database.add_jobs(number, 1000)
    for number in (4, 5):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 1000)
    await rig.refill(2)
    assert rig.per_batch() == {1: 34, 2: 8, 3: 8, 4: 50}


async def test_batch_due_soon_has_slots_behind_four_large_batches() -> None:
    """Requests prefer it (decision 49) and must find it in the array."""

    async def slots_of(last: dict[str, Any]) -> int:
        rig = Rig(slots=100)
        for number in (1, 2, 3, 4):
            rig.database.add_batch(number, submitter_id=SubmitterId(number))
            rig.database.add_jobs(number, 1000)
        rig.database.add_batch(5, submitter_id=SubmitterId(5), **last)
        rig.database.add_jobs(5, 1000)
        await rig.refill(2)
        return rig.per_batch().get(5, 0)

    def due(hours: float) -> dict[str, Any]:
        return {"qos": QoS.SHORT_DEADLINE, "deadline_at": Instant(NOW + hours * HOUR_S)}

    assert await slots_of({}) == 0
    assert await slots_of(due(1.0)) == 25
    assert await slots_of({"qos": QoS.AFAP}) == 25


async def test_each_app_has_slots_if_hosts_request_only_one_type() -> None:
    rig = Rig(slots=100)
    rig.catalogue.types = {1: (CPU,), 2: (NVIDIA,)}
    rig.database.add_batch(1, app_id=1)
    rig.database.add_batch(2, app_id=2)
    rig.database.add_jobs(1, 1000)
    rig.database.add_jobs(2, 1000)
    for _ in range(100):
        rig.array.note_request([CPU])
    await rig.refill()
    assert rig.per_batch() == {1: 88, 2: 12}


async def test_ordinary_jobs_of_other_workers_shards_are_left_to_them() -> None:
    rig = Rig()
    rig.shards.shards = frozenset(range(32))
    rig.database.add_batch(1)
    added = rig.database.add_jobs(1, 400)
    await rig.refill(20)
    assert all(shard_of(slot.job_id) < 32 for slot in rig.slots())
    for _ in range(20):
        for slot in rig.slots():
            if rig.database.unsent.keys() - {slot.instance_id}:
                rig.send(slot)
        await rig.refill()
    assert {r.instance_id for r in added if shard_of(r.job_id) < 32} <= rig.offered


@pytest.mark.parametrize(("qos", "count"), [(QoS.AFAP, 90), (QoS.THROUGHPUT, 20)])
async def test_gated_jobs_and_tails_are_in_every_worker(qos: QoS, count: int) -> None:
    rig = Rig()
    rig.shards.shards = frozenset({5})
    rig.database.add_batch(1, qos=qos)
    rig.database.add_jobs(1, count)
    await rig.refill()
    assert len(rig.ids()) == count


async def test_retries_are_in_every_worker_returned_jobs_in_one() -> None:
    rig = Rig()
    rig.shards.shards = frozenset({63})
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 200)
    retries = rig.database.add_jobs(1, 3, retries=1)
    handed_back = rig.database.add_jobs(1, 64, handed_back=True)
    await rig.refill()
    assert {ready.instance_id for ready in retries} <= set(rig.ids())
    ours = {ready.instance_id for ready in handed_back if shard_of(ready.job_id) == 63}
    assert {ready.instance_id for ready in handed_back} & set(rig.ids()) == ours


async def test_jobs_late_for_their_batch_are_in_every_worker() -> None:
    rig = Rig()
    rig.shards.shards = frozenset({5})
    rig.catalogue.medians_s[1] = 7200.0
    rig.database.add_batch(1, qos=QoS.SHORT_DEADLINE, deadline_at=Instant(NOW + 5000.0))
    rig.database.add_jobs(1, 90)
    await rig.refill()
    assert len(rig.ids()) == 90


async def test_without_shards_the_array_holds_no_ordinary_jobs() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 400)
    await rig.refill()
    rig.shards.shards = frozenset()
    done = await rig.refill()
    assert (rig.ids(), done.dropped) == ([], 100)
    rig.shards.shards = ALL_SHARDS
    await rig.refill()
    assert len(rig.ids()) == 100


async def test_a_gained_shard_is_read_from_its_start() -> None:
    rig = Rig(slots=500)
    rig.shards.shards = frozenset(range(32))
    rig.database.add_batch(1)
    added = rig.database.add_jobs(1, 400)
    await rig.refill(3)
    rig.shards.shards = ALL_SHARDS
    await rig.refill(10)
    assert set(rig.ids()) == {ready.instance_id for ready in added}


async def test_slots_of_an_ended_batch_vanish_with_the_next_refill() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_batch(2)
    rig.database.add_jobs(1, 5)
    rig.database.add_jobs(2, 5)
    await rig.refill()
    rig.database.end(1)
    done = await rig.refill()
    assert (rig.per_batch(), done.dropped) == ({2: 5}, 5)


async def test_slots_sent_by_others_are_found_within_a_sweep() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 100)
    await rig.refill()
    gone = [slot.instance_id for slot in rig.slots()[:40]]
    for instance_id in gone:
        del rig.database.unsent[instance_id]
    await rig.refill(130)
    assert not set(gone) & set(rig.ids())
    assert len(rig.ids()) == 60


async def test_unfinished_dispatch_is_offered_again_after_a_minute() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    (ready, *_) = rig.database.add_jobs(1, 300)
    await rig.refill()
    rig.array.take(ready, HostId(1), VolunteerId(1))
    await rig.refill(30)
    assert ready.instance_id not in rig.array
    rig.clock.pass_s(IN_FLIGHT_S)
    for slot in rig.slots():
        rig.send(slot)
    await rig.refill(10)
    assert ready.instance_id in rig.array


async def test_group_refused_by_all_hosts_backs_off_and_returns() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 3)
    rig.database.add_batch(1)
    rig.database.add_batch(2)
    stuck = rig.database.add_jobs(1, 300)
    rig.database.add_jobs(2, 300)
    await rig.refill()
    for host in (1, 2, 2, 3):
        rig.array.note_refusals([(rig.array.groups()[0].key, RefusalCode.MEMORY)], HostId(host))
    done = await rig.refill()
    assert done.rotated_out == 50
    assert rig.per_batch() == {2: 100}
    await rig.refill(50)
    assert rig.per_batch() == {2: 100}
    rig.clock.pass_s(300.0)
    await rig.refill(2)
    assert rig.per_batch() == {1: 50, 2: 50}
    assert min(rig.ids()) == stuck[0].instance_id


async def test_refusals_during_the_cool_off_do_not_prolong_it() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 2)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    group = rig.array.groups()[0]
    for host in (1, 2):
        rig.array.note_refusals([(group.key, RefusalCode.MEMORY)], HostId(host))
    await rig.refill()
    for host in (3, 4):
        rig.array.note_refusals([(group.key, RefusalCode.MEMORY)], HostId(host))
    rig.clock.pass_s(300.0)
    await rig.refill()
    assert len(rig.ids()) == 40


async def test_what_stands_behind_a_group_in_its_cool_off_is_found() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 2)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 1000, class_number=10)
    behind = rig.database.add_jobs(1, 30, class_number=11)
    await rig.refill()
    for host in (1, 2):
        rig.array.note_refusals([(rig.array.groups()[0].key, RefusalCode.MEMORY)], HostId(host))
    await rig.refill(60)
    assert set(rig.ids()) == {ready.instance_id for ready in behind}


async def test_report_has_unschedulable_work_with_reasons() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 3)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    since_at = rig.clock.now()
    group = rig.array.groups()[0]
    for host, code in [(1, RefusalCode.MEMORY), (2, RefusalCode.MEMORY), (3, RefusalCode.DISK)]:
        rig.array.note_refusals([(group.key, code)], HostId(host))
    assert [row.rotated_out for row in rig.feeder.array.unrunnable()] == [False]
    await rig.refill()
    (row,) = rig.feeder.array.unrunnable()
    assert (row.batch_id, row.job_class_id, row.waiting, row.hosts) == (1, 10, 40, 3)
    assert len(row.slots) == 40  # each from a different shard
    assert dict(row.refused_by)[HostId(3)] is RefusalCode.DISK
    assert dict(row.codes) == {RefusalCode.MEMORY: 2, RefusalCode.DISK: 1}
    assert (row.since_at, row.rotated_out) == (since_at, True)


@pytest.mark.parametrize("code", [RefusalCode.BELOW_GATE, RefusalCode.NEWCOMER_SHARE])
async def test_work_that_waits_for_a_better_host_stays_and_is_reported(code: RefusalCode) -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 3)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    group = rig.array.groups()[0]
    for host in range(9):
        rig.array.note_refusals([(group.key, code)], HostId(host))
    assert (await rig.refill()).rotated_out == 0
    assert len(rig.array) == 40
    rig.clock.pass_s(300.0)
    (row,) = rig.feeder.array.unrunnable()
    assert (dict(row.codes), row.hosts, row.rotated_out) == ({code: 3}, 3, False)
    for host in range(3):
        rig.array.note_refusals([(group.key, RefusalCode.MEMORY)], HostId(host))
    (row,) = rig.feeder.array.unrunnable()
    assert dict(row.codes) == {RefusalCode.MEMORY: 3}
    rig.array.note_refusals([(group.key, code)], HostId(2))
    assert (await rig.refill()).rotated_out == 0
    rig.array.note_refusals([(group.key, RefusalCode.MEMORY)], HostId(2))
    assert (await rig.refill()).rotated_out == 40


async def test_few_hosts_refusing_for_a_long_time_are_reported_too() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    rig.array.note_refusals([(rig.array.groups()[0].key, RefusalCode.DISK)], HostId(1))
    (row,) = rig.feeder.array.unrunnable()
    assert (row.is_certain, row.more_hosts, row.more_s) == (False, FeederSettings().refusals_to_rotate - 1, 300.0)
    rig.clock.pass_s(300.0)
    (row,) = rig.feeder.array.unrunnable()
    assert (row.waiting, row.hosts, row.rotated_out, row.is_certain) == (40, 1, False, True)


async def test_a_host_that_takes_a_job_breaks_the_row_of_refusals() -> None:
    rig = Rig()
    rig.catalogue.change("feeder.refusals_to_rotate", 2)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 40)
    await rig.refill()
    group = rig.array.groups()[0]
    rig.array.note_refusals([(group.key, RefusalCode.DISK)], HostId(1))
    rig.send(rig.slots()[0])
    assert rig.array.rotation.taken() == {group.key: rig.clock.now()}
    rig.array.note_refusals([(group.key, RefusalCode.DISK)], HostId(2))
    done = await rig.refill()
    assert done.rotated_out == 0


async def test_work_of_an_app_without_a_version_is_not_fed() -> None:
    """No host could take it. A slot that it had goes with the version, and comes back with the next."""
    rig = Rig()
    for number, app in ((1, 1), (2, 2)):
        rig.database.add_batch(number, app_id=AppId(app))
        rig.database.add_jobs(number, 5)
    found = []
    for first in ((CPU,), (), (CPU,)):
        rig.catalogue.types = {1: first, 2: (CPU,)}
        await rig.refill()
        found.append(rig.per_batch())
    assert found == [{1: 5, 2: 5}, {2: 5}, {1: 5, 2: 5}]


async def test_batches_of_a_lost_app_do_not_hide_others() -> None:
    """As many as a refill reads come first in the order."""
    rig = Rig()
    for number in range(1, MOST_BATCHES + 2):
        rig.database.add_batch(number, app_id=AppId(2 if number <= MOST_BATCHES else 1))
        rig.database.add_jobs(number, 1)
    done = await rig.refill()
    assert (rig.per_batch(), done.batches) == ({MOST_BATCHES + 1: 1}, 1)


async def test_fewer_slots_in_the_settings_shrink_the_array() -> None:
    rig = Rig(slots=100)
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 400)
    await rig.refill()
    before = rig.ids()
    rig.catalogue.change("feeder.slots", 20)
    await rig.refill()
    assert rig.ids() == before[:20]


class WithoutClasses(FakeWaiting):
    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        return {}


async def test_a_missing_job_class_is_named() -> None:
    rig = Rig(database=WithoutClasses())
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 1)
    with pytest.raises(NotFoundError, match="10"):
        await rig.refill()


async def test_many_retries_of_a_batch_do_not_raise_other_read_limits() -> None:
    rig = Rig(slots=800)
    for number in range(1, 11):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 600, retries=1)
    await rig.refill(times=20)
    held = rig.per_batch()
    rig.database.rows_read = 0
    await rig.refill()
    without = 10 - len(held)
    assert without >= 5
    assert max(held.values()) > 2 * URGENT_PER_BATCH
    assert rig.database.rows_read <= len(held) * (max(held.values()) + URGENT_PER_BATCH) + without * URGENT_PER_BATCH


# ------------------------------------------------------------------ limits and turns


async def test_batch_with_a_limit_has_no_more_slots_than_it_may_send() -> None:
    rig = Rig()
    rig.database.add_batch(1, sent_most=7)
    rig.database.add_jobs(1, 30)
    await rig.refill()
    assert rig.per_batch() == {1: 7}


async def test_slots_beyond_a_new_limit_leave_until_it_is_lifted() -> None:
    rig = Rig()
    rig.database.add_batch(1)
    rig.database.add_jobs(1, 30)
    await rig.refill()
    batch = rig.database.batches[BatchId(1)]
    rig.database.batches[BatchId(1)] = replace(batch, sent_most=batch.counts.sent + 4)
    await rig.refill()
    assert rig.per_batch() == {1: 4}

    rig.database.batches[BatchId(1)] = replace(rig.database.batches[BatchId(1)], sent_most=None)
    await rig.refill(3)
    assert rig.per_batch() == {1: 30}


async def test_what_was_sent_since_counts_against_the_bound() -> None:
    rig = Rig()
    rig.database.add_batch(1, sent_most=5)
    rig.database.add_jobs(1, 30)
    await rig.refill()
    for slot in rig.slots()[:3]:
        rig.send(slot)
    await rig.fill_up()
    assert rig.per_batch() == {1: 2}


async def test_one_submitter_is_capped_while_others_have_work() -> None:
    rig = Rig(slots=100)
    for number, submitter in ((1, 1), (2, 1), (3, 2), (4, 3), (5, 4)):
        rig.database.add_batch(number, submitter_id=SubmitterId(submitter))
        rig.database.add_jobs(number, 300)
    await rig.refill()
    assert rig.per_batch() == {1: 25, 3: 25, 4: 25, 5: 25}


async def test_one_submitter_may_fill_the_array_if_others_have_none() -> None:
    rig = Rig(slots=100)
    for number in (1, 2):
        rig.database.add_batch(number)
        rig.database.add_jobs(number, 300)
    await rig.refill()
    assert rig.per_batch() == {1: 50, 2: 50}


async def test_under_equal_access_who_holds_less_has_more_slots() -> None:
    rig = Rig(slots=100)
    rig.catalogue.change("ordering.policy", "equal_access")
    for number, held in ((1, 0.0), (2, 10.0), (3, 10.0)):  # a batch's key is its submitter's usage
        rig.database.add_batch(number, submitter_id=SubmitterId(number), order_key=held)
        rig.database.add_jobs(number, 300)
    await rig.refill()
    assert rig.per_batch() == {1: 40, 2: 30, 3: 30}


async def test_equal_access_can_be_among_accounts() -> None:
    rig = Rig(slots=90)
    rig.catalogue.change("ordering.policy", "equal_access")
    rig.catalogue.change("ordering.equal_among", "accounts")
    for number, account in ((1, 1), (2, 2), (3, 2)):
        rig.database.add_batch(number, submitter_id=SubmitterId(number), account_id=AccountId(account), order_key=0.0)
        rig.database.add_jobs(number, 300)
    await rig.refill()
    per_batch = rig.per_batch()
    assert per_batch[1] == 45
    assert per_batch.get(2, 0) + per_batch.get(3, 0) == 45


async def test_equal_access_counts_the_processors_of_each_job() -> None:
    rig = Rig(slots=90)
    rig.catalogue.change("ordering.policy", "equal_access")
    for number, job_pe in ((1, 4.0), (2, 2.0), (3, 2.0)):
        rig.database.add_batch(number, submitter_id=SubmitterId(number), order_key=0.0, job_pe=job_pe)
        rig.database.add_jobs(number, 300)
    await rig.refill()
    assert rig.per_batch() == {1: 18, 2: 36, 3: 36}
