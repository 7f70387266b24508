from __future__ import annotations

import tracemalloc

from domain.apps import CPU
from domain.jobs import Candidate, Input, Ready
from domain.refusals import RefusalCode
from domain.settings import FeederSettings
from domain.units import AppId, BatchId, HostId, InstanceId, JobClassId, JobId, VolunteerId
from feeder.array import JobArray
from feeder.in_flight import IN_FLIGHT_S
from tests.builders import a_batch, a_job_class, a_ready
from tests.unit.feeder.fakes import StillClock

HOST = HostId(7)
ADA = VolunteerId(3)


def an_array(clock: StillClock | None = None, slots: int = 1000) -> JobArray:
    return JobArray(clock or StillClock(), lambda: FeederSettings(slots=slots))


def put(array: JobArray, number: int, *, batch: int = 1, key: float = 1.0, tier: int = 0, **changes: object) -> Ready:
    job_class = changes.pop("job_class_id", JobClassId(batch))
    ready = a_ready(
        **{
            "instance_id": InstanceId(number),
            "job_id": JobId(number),
            "batch_id": BatchId(batch),
            "job_class_id": job_class,
            **changes,
        }
    )
    array.place(
        Candidate(ready),
        a_batch(batch_id=BatchId(batch), order_key=key, order_tier=tier),
        a_job_class(job_class_id=job_class, batch_id=BatchId(batch)),
    )
    return ready


def order_of(array: JobArray) -> list[int]:
    return [slot.instance_id for group in array.groups() for slot in group.slots()]


def test_groups_stand_by_tier_then_key_then_retries_then_id() -> None:
    array = an_array()
    put(array, 1, batch=1, key=5.0)
    put(array, 2, batch=2, key=1.0, tier=1)
    put(array, 3, batch=3, key=2.0)
    put(array, 4, batch=1, key=5.0, retries=1)
    put(array, 5, batch=1, key=5.0, sibling_returned=True)
    put(array, 6, batch=1, key=5.0, retries=2)
    assert order_of(array) == [3, 6, 4, 5, 1, 2]


def test_returned_sibling_precedes_smaller_id_of_equal_retries() -> None:
    array = an_array()
    put(array, 1, retries=1)
    put(array, 2, retries=1, sibling_returned=True)
    assert order_of(array) == [2, 1]


def test_groups_of_equal_key_swap_as_first_slots_are_taken() -> None:
    array = an_array()
    first = put(array, 1, batch=1)
    put(array, 4, batch=1)
    put(array, 2, batch=2)
    assert order_of(array) == [1, 4, 2]
    array.take(first, HOST, ADA)
    assert order_of(array) == [2, 4]


def test_taking_leaves_the_slots_a_request_is_walking_unchanged() -> None:
    array = an_array()
    for number in range(1, 5):
        put(array, number)
    group = array.groups()[0]
    walked = []
    for slot in group.slots():
        array.take(slot, HOST, ADA)
        walked.append(slot.instance_id)
    assert walked == [1, 2, 3, 4]
    assert not array.groups()


def test_a_taken_slot_is_not_placed_again_until_it_is_given_back() -> None:
    array = an_array()
    ready = put(array, 1)
    array.take(ready, HOST, ADA)
    put(array, 1)
    assert len(array) == 0
    array.give_back(ready)
    assert order_of(array) == [1]


def test_giving_back_an_untaken_slot_has_no_effect() -> None:
    array = an_array()
    ready = put(array, 1)
    array.give_back(ready)
    array.take(ready, HOST, ADA)
    array.give_back(ready)
    array.give_back(ready)
    assert order_of(array) == [1]


def test_slot_returned_to_a_full_array_waits_for_revalidation() -> None:
    array = an_array(slots=10)
    ready = put(array, 1)
    array.take(ready, HOST, ADA)
    for number in range(2, 2 + 10 + 20):
        put(array, number)
    array.give_back(ready)
    assert ready.instance_id not in array
    assert [taken.ready for taken in array.in_flight.due(StillClock().monotonic(), 10)] == [ready]


def test_a_committed_dispatch_is_forgotten_at_once() -> None:
    array = an_array()
    ready = put(array, 1)
    array.take(ready, HOST, ADA)
    array.sent([ready.instance_id])
    assert (len(array.in_flight), array.is_known(ready.instance_id)) == (0, False)
    array.sent([ready.instance_id])
    array.give_back(ready)
    assert order_of(array) == []


def test_instances_sent_during_a_read_are_not_placed_again() -> None:
    array = an_array()
    ready = put(array, 1)
    with array.reading():
        array.take(ready, HOST, ADA)
        with array.reading():
            array.sent([ready.instance_id])
        put(array, 1)
        assert order_of(array) == []
    assert len(array.in_flight) == 0


def test_a_host_that_lost_a_job_may_have_its_sibling() -> None:
    array = an_array()
    ready, sibling = put(array, 1, job_id=JobId(9)), put(array, 2, job_id=JobId(9))
    array.take(ready, HOST, ADA)
    array.lost([ready.instance_id])
    assert len(array.in_flight) == 0
    assert array.may_have(sibling, HOST, ADA) is None


def test_slots_of_own_shards_stand_before_others_of_equal_rank() -> None:
    array = an_array()
    for number in range(1, 7):
        put(array, number, retries=1 if number == 5 else 0)
    array.own({4, 5, 6})
    assert order_of(array) == [5, 4, 6, 1, 2, 3]
    put(array, 64 + 4)
    put(array, 7)
    assert order_of(array) == [5, 4, 6, 68, 7, 1, 2, 3]


def test_slots_of_foreign_shards_come_last() -> None:
    array = an_array()
    for number in (4, 64 + 4, 5, 64 + 5, 128 + 5):
        put(array, number)
    array.own({4})
    assert order_of(array) == [4, 68, 133, 69, 5]


def test_groups_of_equal_key_with_own_shards_come_first() -> None:
    array = an_array()
    put(array, 1, batch=1)
    put(array, 2, batch=2)
    array.own({2})
    assert order_of(array) == [2, 1]
    array.own({1})
    assert order_of(array) == [1, 2]


def test_the_host_and_volunteer_of_a_taken_sibling_are_refused() -> None:
    array = an_array()
    ready = put(array, 1, job_id=JobId(9))
    sibling = put(array, 2, job_id=JobId(9))
    assert array.may_have(sibling, HOST, ADA) is None
    array.take(ready, HOST, ADA)
    assert array.may_have(sibling, HOST, VolunteerId(99)) is RefusalCode.SAME_HOST
    assert array.may_have(sibling, HostId(99), ADA) is RefusalCode.SAME_VOLUNTEER
    assert array.may_have(sibling, HostId(99), VolunteerId(99)) is None


def test_siblings_the_database_names_are_refused() -> None:
    array = an_array()
    ready = a_ready()
    array.place(Candidate(ready, (HOST,), (ADA,)), a_batch(), a_job_class())
    assert array.may_have(ready, HOST, VolunteerId(99)) is RefusalCode.SAME_HOST
    assert array.may_have(ready, HostId(99), ADA) is RefusalCode.SAME_VOLUNTEER


def test_rereading_a_slot_updates_its_siblings() -> None:
    array = an_array()
    ready = put(array, 1)
    placed = array.place(Candidate(ready, (HOST,), (ADA,)), a_batch(), a_job_class())
    assert not placed
    assert array.may_have(ready, HOST, ADA) is RefusalCode.SAME_HOST


def test_host_of_a_returned_dispatch_is_retried_after_a_minute() -> None:
    clock = StillClock()
    array = an_array(clock)
    ready = put(array, 1)
    array.take(ready, HOST, ADA)
    array.give_back(ready)
    array.forget((), clock.monotonic())
    assert array.may_have(ready, HOST, ADA) is RefusalCode.SAME_HOST
    clock.pass_s(IN_FLIGHT_S)
    array.forget((), clock.monotonic())
    assert array.may_have(ready, HOST, ADA) is None


def test_a_slot_that_becomes_urgent_moves_to_the_urgent_group() -> None:
    array = an_array()
    put(array, 1)
    put(array, 2)
    put(array, 2, sibling_returned=True)
    assert [(group.urgent, len(group.slots())) for group in array.groups()] == [(True, 1), (False, 1)]
    assert order_of(array) == [2, 1]


def test_a_slot_takes_over_the_copies_its_job_needs() -> None:
    array = an_array()
    put(array, 1)
    for copies in (2, 0):  # the second row was read earlier
        put(array, 1, copies=copies)
        assert [slot.copies for group in array.groups() for slot in group.slots()] == [2]


def test_a_new_order_of_the_batches_holds_at_once() -> None:
    array = an_array()
    put(array, 1, batch=1, key=1.0)
    put(array, 2, batch=2, key=2.0)
    array.groups()
    array.refresh({BatchId(1): a_batch(batch_id=BatchId(1), order_key=3.0)}, {})
    assert order_of(array) == [2, 1]
    assert array.groups()[1].batch.order_key == 3.0


def test_groups_are_the_same_object_until_their_order_changes() -> None:
    array = an_array()
    first = put(array, 1)
    put(array, 2)
    put(array, 3, batch=2, key=2.0)
    before = array.groups()
    array.take(first, HOST, ADA)
    assert array.groups() is before


def test_taking_the_last_slot_calls_for_a_refill() -> None:
    array = an_array()
    first, second = put(array, 1), put(array, 2)
    array.take(first, HOST, ADA)
    assert not array.level.low.is_set()
    array.take(second, HOST, ADA)
    assert array.level.low.is_set()


def test_a_group_names_the_sticky_files_its_jobs_share() -> None:
    sticky, plain = Input("big_1", "big", 10, "0" * 32, sticky=True), Input("in_1", "in", 10, "0" * 32)
    array = an_array()
    array.place(Candidate(a_ready()), a_batch(), a_job_class(inputs=(sticky, plain)))
    assert array.groups()[0].sticky_files == frozenset({"big_1"})


async def test_an_array_without_a_database_finds_nothing_more() -> None:
    assert not await an_array().search([(AppId(1), CPU)], 5)


def test_a_slot_costs_less_than_a_kibibyte() -> None:
    batch, job_class = a_batch(), a_job_class()
    array = an_array(slots=20_000)
    tracemalloc.start()
    try:
        for number in range(1_000_000, 1_010_000):
            ready = Ready(InstanceId(number), JobId(2 * number), BatchId(int("1")), JobClassId(int("1")))
            array.place(Candidate(ready), batch, job_class)
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(array) == 10_000
    assert used_bytes / 10_000 < 1024
