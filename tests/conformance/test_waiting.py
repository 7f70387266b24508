"""Tests that the feeder reads unsent instances in order, after cursors, and no others."""

from __future__ import annotations

from domain.batches import FIRST_PLACE, Batch, QoS, place_of
from domain.insight import WorkAhead
from domain.jobs import Candidate, FreshRange, InstanceState, JobState, Ready
from domain.settlement import JobSettlement
from domain.units import BatchId, InstanceId, JobClassId, later, shard_of
from tests.builders import NOW
from tests.stores import Store, as_postgres
from tests.worlds import (
    a_registered_app,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    fresh_of,
    report,
    waiting_of,
)


def ids_of(candidates: list[Candidate]) -> list[InstanceId]:
    return [candidate.ready.instance_id for candidate in candidates]


async def a_batch_in_shard_order(store: Store, jobs: int) -> tuple[Batch, list[Candidate]]:
    """Return a batch and its candidates by (shard, id)."""
    batch = await a_submitted_batch(store, jobs=jobs)
    candidates = await waiting_of(store, batch.batch_id)
    return batch, sorted(candidates, key=lambda one: (shard_of(one.ready.job_id), one.ready.instance_id))


async def make_new_instances(store: Store, batch: Batch, *, count: int, retries: int, hasten: bool = False) -> None:
    """Settle the first unsettled job so that it gets new instances."""
    facts = next(facts for facts in await store.unsettled.unsettled(100, now=NOW) if facts.batch_id == batch.batch_id)
    settlement = JobSettlement(
        facts.job_id,
        facts.serial,
        JobState.OPEN,
        settled_at=NOW,
        new_instances=count,
        retries=retries,
        hasten=hasten,
    )
    assert await store.unsettled.settle([settlement]) == 1


async def test_ready_batches_come_by_tier_then_key_then_id(store: Store) -> None:
    last = await a_submitted_batch(store, order_tier=1, order_key=0.0)
    second = await a_submitted_batch(store, order_tier=0, order_key=5.0)
    third = await a_submitted_batch(store, order_tier=0, order_key=5.0)
    first = await a_submitted_batch(store, order_tier=0, order_key=-5.0)

    assert list(await store.waiting.ready_batches(10)) == [first, second, third, last]
    assert list(await store.waiting.ready_batches(2)) == [first, second]


async def test_limit_of_ready_batches_counts_only_those_of_the_apps(store: Store) -> None:
    other = (await a_registered_app(store, "other")).app_id
    for _ in range(2):
        await a_submitted_batch(store, app_id=other)
    last = await a_submitted_batch(store)

    assert list(await store.waiting.ready_batches(1, [last.app_id])) == [last]
    assert list(await store.waiting.ready_batches(9, [])) == []


async def test_batches_that_may_go_first_are_read_alone(store: Store) -> None:
    due = await a_submitted_batch(store, order_key=2.0, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))
    afap = await a_submitted_batch(store, order_key=1.0, qos=QoS.AFAP)
    other = (await a_registered_app(store, "other")).app_id
    await a_submitted_batch(store, order_key=0.5, qos=QoS.AFAP, app_id=other)
    await a_submitted_batch(store, order_key=0.0)
    waiting, apps = as_postgres(store).waiting, [due.app_id]

    assert [await waiting.afap_or_due(limit, apps) for limit in (1, 2, 3)] == [[], [afap], [afap, due]]


async def test_work_before_a_place_counts_ready_batches(store: Store) -> None:
    await a_submitted_batch(store, jobs=2, order_key=0.0)
    second = await a_submitted_batch(store, jobs=3, order_key=1.0)
    third = await a_submitted_batch(store, jobs=4, order_key=1.0)
    ended = await a_submitted_batch(store, jobs=5, order_tier=-1)
    await store.submissions.abort_batch(ended.batch_id, now=NOW)
    other = (await a_registered_app(store, "other")).app_id
    await a_submitted_batch(store, jobs=6, order_tier=-1, app_id=other)
    waiting, apps = as_postgres(store).waiting, [second.app_id]

    found = [await waiting.work_before(place_of(one), 9, apps, without=()) for one in (second, third)]

    assert found == [WorkAhead(1, 2), WorkAhead(2, 5)]
    assert [[one.counts.unsent for one in ahead.first] for ahead in found] == [[2], [2, 3]]
    assert await waiting.work_before(place_of(third), 1, apps, without=()) == WorkAhead(1, 2, is_part=True)
    assert await waiting.work_before(FIRST_PLACE, 9, apps, without=()) == WorkAhead()
    assert await waiting.work_before(place_of(second), 9, [*apps, other], without=()) == WorkAhead(2, 8)
    assert await waiting.work_before(place_of(third), 9, apps, without=[second.batch_id]) == WorkAhead(1, 2)


async def test_batch_is_ready_only_with_unsent_instances(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)

    sent = await a_sent_instance(store, batch.batch_id, host)
    assert list(await store.waiting.ready_batches(10)) == []

    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    await make_new_instances(store, batch, count=1, retries=1)
    [ready] = await store.waiting.ready_batches(10)
    assert (ready.batch_id, ready.counts.unsent) == (batch.batch_id, 1)


async def test_ready_batches_carry_their_counts_of_the_moment(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    await a_sent_instance(store, batch.batch_id, host)

    [ready] = await store.waiting.ready_batches(10)

    assert (ready.counts.jobs_total, ready.counts.unsent, ready.counts.in_progress) == (3, 2, 1)
    assert ready.last_first_dispatch_at == NOW


async def test_fresh_range_is_one_shard_of_one_batch_ascending(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=130)
    await a_submitted_batch(store, jobs=130)

    for shard in range(64):
        found = list(await store.waiting.fresh([FreshRange(batch.batch_id, shard, InstanceId(0), 10)]))
        assert {shard_of(candidate.ready.job_id) for candidate in found} == {shard}
        assert {candidate.ready.batch_id for candidate in found} == {batch.batch_id}
        assert len(found) in (2, 3)
        assert ids_of(found) == sorted(ids_of(found))


async def test_a_candidate_says_what_orders_it_and_tells_it_apart(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    [job] = await store.views.jobs(batch.batch_id, limit=1)
    [instance] = (await store.views.job(job.job_id)).instances

    [candidate] = await fresh_of(store, batch.batch_id)

    assert candidate == Candidate(Ready(instance.instance_id, job.job_id, batch.batch_id, job.job_class_id))


async def test_cursor_continues_after_last_instance_within_limit(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=320)
    whole = ids_of(list(await store.waiting.fresh([FreshRange(batch.batch_id, 7, InstanceId(0), 99)])))
    assert len(whole) == 5

    first = ids_of(list(await store.waiting.fresh([FreshRange(batch.batch_id, 7, InstanceId(0), 2)])))
    rest = ids_of(list(await store.waiting.fresh([FreshRange(batch.batch_id, 7, first[-1], 99)])))

    assert (first, rest) == (whole[:2], whole[2:])
    assert list(await store.waiting.fresh([FreshRange(batch.batch_id, 7, whole[-1], 99)])) == []


async def test_each_of_several_ranges_has_its_own_limit(store: Store) -> None:
    one = await a_submitted_batch(store, jobs=320)
    two = await a_submitted_batch(store, jobs=320)
    ranges = [FreshRange(batch_id, 3, InstanceId(0), 4) for batch_id in (one.batch_id, two.batch_id)]

    found = await store.waiting.fresh(ranges)

    assert [candidate.ready.batch_id for candidate in found].count(one.batch_id) == 4
    assert [candidate.ready.batch_id for candidate in found].count(two.batch_id) == 4


async def test_sent_instance_leaves_fresh_range(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=256)
    in_shard = list(await store.waiting.fresh([FreshRange(batch.batch_id, 5, InstanceId(0), 99)]))
    for position in (1, 0, 3):
        await a_sent_instance(store, batch.batch_id, await a_registered_host(store), in_shard[position])

        left = await store.waiting.fresh([FreshRange(batch.batch_id, 5, InstanceId(0), 99)])
        in_left = ids_of(list(left))
        assert in_shard[position].ready.instance_id not in in_left

    assert in_left == [in_shard[2].ready.instance_id]


async def test_ranges_of_unknown_batches_are_empty(store: Store) -> None:
    assert list(await store.waiting.fresh([FreshRange(BatchId(99), 0, InstanceId(0), 9)])) == []
    assert list(await store.waiting.urgent([BatchId(99)], 9)) == []
    assert list(await store.waiting.tail([BatchId(99)], 9)) == []


async def test_retries_are_urgent_by_retries_descending_then_id(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    for candidate, retries in zip(await waiting_of(store, batch.batch_id), (1, 3, 1), strict=True):
        host = await a_registered_host(store)
        sent = await a_sent_instance(store, batch.batch_id, host, candidate)
        await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
        await make_new_instances(store, batch, count=1, retries=retries)

    found = list(await store.waiting.urgent([batch.batch_id], 10))

    assert [candidate.ready.retries for candidate in found] == [3, 1, 1]
    assert found[1].ready.instance_id < found[2].ready.instance_id
    assert [candidate.ready.urgent for candidate in found] == [True, True, True]
    assert await fresh_of(store, batch.batch_id) == []
    assert ids_of(list(await store.waiting.urgent([batch.batch_id], 2))) == ids_of(found)[:2]


async def test_urgent_instance_has_hosts_of_its_siblings(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    await make_new_instances(store, batch, count=1, retries=1)

    [candidate] = await store.waiting.urgent([batch.batch_id], 10)

    assert (candidate.sibling_hosts, candidate.sibling_volunteers) == ((host.host_id,), (host.volunteer_id,))


async def test_a_fresh_instance_names_the_host_of_its_sent_sibling(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    await a_sent_instance(store, batch.batch_id, host)

    [candidate] = await fresh_of(store, batch.batch_id)

    assert (candidate.sibling_hosts, candidate.sibling_volunteers) == ((host.host_id,), (host.volunteer_id,))
    assert not candidate.ready.sibling_returned


async def test_instances_name_the_copies_a_dispatch_asked_for(store: Store) -> None:
    """The app itself no longer replicates: copies requested before stay."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=1, copies=2)
    sent = await a_sent_instance(store, batch.batch_id, host, copies=2)
    [fresh], [tail] = await fresh_of(store, batch.batch_id), await store.waiting.tail([batch.batch_id], 9)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    await make_new_instances(store, batch, count=1, retries=1)
    [urgent] = await store.waiting.urgent([batch.batch_id], 9)

    assert [one.ready.copies for one in (fresh, tail, urgent)] == [2, 2, 2]
    assert fresh.sibling_volunteers == (host.volunteer_id,)


async def test_replica_of_returned_sibling_is_hastened(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    await make_new_instances(store, batch, count=0, retries=0, hasten=True)

    [candidate] = await store.waiting.urgent([batch.batch_id], 10)

    assert (candidate.ready.retries, candidate.ready.sibling_returned) == (0, True)
    assert await fresh_of(store, batch.batch_id) == []


async def test_the_tail_is_fresh_work_of_every_shard(store: Store) -> None:
    batch, in_order = await a_batch_in_shard_order(store, jobs=100)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store), in_order[0])

    found = list(await store.waiting.tail([batch.batch_id], 1000))

    assert set(ids_of(found)) == set(ids_of(in_order[1:]))
    for shard in range(64):
        within = [one.ready.instance_id for one in found if shard_of(one.ready.job_id) == shard]
        assert within == sorted(within)
    assert len(list(await store.waiting.tail([batch.batch_id], 30))) == 30


async def test_still_unsent_instances_are_identified(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    ids = ids_of(await waiting_of(store, batch.batch_id))
    sent = await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    left = await store.waiting.still_unsent([*ids, InstanceId(10_000)])

    assert set(left) == set(ids) - {sent.instance_id}


async def test_unknown_job_classes_are_left_out(store: Store) -> None:
    assert await store.waiting.job_classes([JobClassId(99)]) == {}


async def test_a_batch_is_ready_for_its_own_app_only(store: Store) -> None:
    other = (await a_registered_app(store, "other")).app_id
    await a_submitted_batch(store, app_id=other)

    assert [batch.app_id for batch in await store.waiting.ready_batches(9)] == [other]


async def test_a_finished_batch_is_not_ready(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, copies=2)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    [facts] = await store.unsettled.unsettled(9, now=NOW)

    settlement = JobSettlement(
        facts.job_id, facts.serial, JobState.VALID, later(NOW, 9.0), canonical_instance_id=sent.instance_id
    )
    await store.unsettled.settle([settlement])

    assert list(await store.waiting.ready_batches(9)) == []
