"""Tests the console's lists: filters, order and paging are the same in every store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from administration.batch_lists import list_page
from administration.ordering.places import position, sent_first
from domain.batches import BatchState, QoS
from domain.errors import NotFoundError
from domain.forecasting import MOVED_S
from domain.history import START
from domain.jobs import InstanceState, JobState
from domain.settlement import JobSettlement
from domain.units import AppId, BatchId, Seconds, SubmitterId, later
from domain.views import (
    ALL_SENT,
    ActiveCounts,
    BatchChoice,
    BatchSort,
    InstancePlace,
    ListedBatch,
    ListedInstance,
    NotSent,
    SimulationState,
)
from store.postgres import PostgresStore
from tests.builders import NOW
from tests.conformance.test_forecasts import a_record
from tests.conformance.to_settle import failed, valid
from tests.stores import Store
from tests.worlds import (
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
)

S = InstanceState
ALL = BatchChoice()


def ids(found: object) -> list[int]:
    assert isinstance(found, list)
    return [one.batch.batch_id for one in found]


async def pages(
    store: Store,
    sort: BatchSort,
    choice: BatchChoice = ALL,
    not_sent: NotSent = ALL_SENT,
    first: Collection[BatchId] = (),
    limit: int = 2,
) -> list[int]:
    """Return every batch of a list, read in pages."""
    found: list[ListedBatch] = []
    place, stopped = None, not_sent
    while page := list(
        await store.listings.batches(choice, sort, after=place, limit=limit, not_sent=stopped, first=first)
    ):
        found += page
        place = page[-1].place
    return ids(found)


async def test_batches_are_listed_by_age_queue_and_deadline(store: Store) -> None:
    urgent: dict[str, Any] = {"qos": QoS.SHORT_DEADLINE}
    one = await a_submitted_batch(store, jobs=1, order_tier=1, order_key=0.0)
    two = await a_submitted_batch(store, jobs=1, order_key=9.0, deadline_at=later(NOW, 50.0), **urgent)
    three = await a_submitted_batch(store, jobs=1, order_key=3.0)
    four = await a_submitted_batch(store, jobs=1, order_key=9.0, deadline_at=later(NOW, 40.0), **urgent)
    over = await a_submitted_batch(store, jobs=1, order_key=1.0, deadline_at=later(NOW, 10.0), **urgent)
    await store.submissions.abort_batch(over.batch_id, now=NOW)

    active = [batch.batch_id for batch in (four, three, two, one)]
    assert await pages(store, BatchSort.NEWEST) == [over.batch_id, *active]
    assert await pages(store, BatchSort.OLDEST) == [*active[::-1], over.batch_id]
    assert await pages(store, BatchSort.NEWEST, BatchChoice(BatchState.ACTIVE)) == active
    assert await pages(store, BatchSort.OLDEST, BatchChoice(BatchState.ACTIVE)) == active[::-1]
    in_order = [batch.batch_id for batch in (three, two, four, one)]
    assert await pages(store, BatchSort.ORDER) == in_order
    assert await pages(store, BatchSort.ORDER_DOWN) == in_order[::-1]
    assert await pages(store, BatchSort.DEADLINE) == [batch.batch_id for batch in (four, two, one, three)]
    assert await pages(store, BatchSort.DEADLINE_DOWN) == [batch.batch_id for batch in (two, four, three, one)]


async def test_batches_are_listed_by_their_position(store: Store) -> None:
    """Batches that are sent first are not the first in the order, and those whose instances are all sent have none."""
    await a_registered_version(store)
    host, late = await a_registered_host(store), {"qos": QoS.SHORT_DEADLINE, "deadline_at": NOW}
    made: dict[str, Any] = {
        "plain": {"order_key": 3.0},
        "late": {"order_key": 2.0, **late},
        "sent": {"order_key": 1.0},
        "standby": {"order_tier": 41, "order_key": 0.0},
        "rush": {"order_key": 9.0, "qos": QoS.AFAP},
        "expedite": {"order_tier": -40, "order_key": 5.0},
        "last rush": {"order_tier": 41, "order_key": 4.0, "qos": QoS.AFAP},
        "sent rush": {"order_key": 0.0, "qos": QoS.AFAP},
    }
    batches = {name: await a_submitted_batch(store, jobs=1, **values) for name, values in made.items()}
    none = [batches[name].batch_id for name in ("sent", "sent rush")]
    for batch_id in none:
        await a_sent_instance(store, batch_id, host)
    urgent = await sent_first(cast(PostgresStore, store), await store.applications.load_catalogue(), NOW, ())
    places = await store.ordering_rules.places([one.batch_id for one in batches.values()], {AppId(1)}, without=())
    positions = {
        position(one, places[one.batch_id], urgent).place: name
        for name, one in batches.items()
        if one.batch_id in places
    }

    in_order = [batches[positions[place]].batch_id for place in sorted(positions)]
    assert [positions[place] for place in range(1, 7)] == ["rush", "last rush", "late", "expedite", "plain", "standby"]
    for limit in (1, 2, 3, 9):
        assert await pages(store, BatchSort.ORDER, first=urgent, limit=limit) == [*in_order, *none]
        assert await pages(store, BatchSort.ORDER_DOWN, first=urgent, limit=limit) == [*in_order[::-1], *none[::-1]]
    assert await pages(store, BatchSort.ORDER, BatchChoice(qos=QoS.AFAP), first=urgent) == [*in_order[:2], none[1]]


async def test_batches_are_listed_by_their_forecast_end(store: Store) -> None:
    dated: dict[str, Any] = {"qos": QoS.SHORT_DEADLINE, "deadline_at": later(NOW, 30.0)}
    far, none, near = [await a_submitted_batch(store, jobs=1, **dated) for _ in range(3)]
    for batch, q50, q90 in ((far, 20.0, 40.0), (near, 10.0, 30.0)):
        ends = {"q10_at": NOW, "q50_at": later(NOW, q50), "q90_at": later(NOW, q90)}
        await store.forecasts.publish(a_record(batch, **ends))

    assert await pages(store, BatchSort.EXPECTED_END) == [near.batch_id, far.batch_id, none.batch_id]
    assert await pages(store, BatchSort.LATEST_END_DOWN) == [far.batch_id, near.batch_id, none.batch_id]
    assert await pages(store, BatchSort.NEWEST, BatchChoice(at_risk_at=NOW)) == [far.batch_id]
    assert await pages(store, BatchSort.NEWEST, BatchChoice(at_risk_at=later(NOW, 30.0))) == [
        near.batch_id,
        none.batch_id,
        far.batch_id,
    ]
    assert await store.listings.counts(BatchChoice(), NOW, [far.batch_id, BatchId(99)]) == ActiveCounts(3, 1, 0, 1)


async def test_batches_whose_end_is_not_shown_are_listed_last(store: Store) -> None:
    """Stopped batches and those moved since their forecast have a stored end, which is not shown."""
    early, stopped, moved, never, late = [await a_submitted_batch(store, jobs=1) for _ in range(5)]
    for number, batch in enumerate((early, stopped, moved, late)):
        ends = {"q10_at": NOW, "q50_at": later(NOW, number), "q90_at": later(NOW, 9.0 + number)}
        await store.forecasts.publish(a_record(batch, **ends))
    await store.ordering_rules.set_moved(moved.batch_id, later(NOW, 60.0))
    await store.ordering_rules.set_moved(late.batch_id, later(NOW, -MOVED_S))
    without = [moved.batch_id, never.batch_id]

    for kind in ("expected_end", "latest_end"):
        up, down = BatchSort(kind), BatchSort(f"-{kind}")
        with_end = [one.batch_id for one in (early, stopped, late)]
        assert await pages(store, up) == [*with_end, *without]
        assert await pages(store, down) == [*with_end[::-1], *without[::-1]]
        one = NotSent(batch_ids=[stopped.batch_id])
        none = [stopped.batch_id, *without]
        assert await pages(store, up, not_sent=one) == [early.batch_id, late.batch_id, *none]
        assert await pages(store, down, not_sent=one) == [late.batch_id, early.batch_id, *none[::-1]]
    every = [one.batch_id for one in (early, stopped, moved, never, late)]
    for all_stopped in (NotSent(all=True), NotSent(app_ids=[early.app_id]), NotSent(queues=[early.queue])):
        assert await pages(store, BatchSort.EXPECTED_END, not_sent=all_stopped) == every


async def test_batch_whose_instances_are_sent_keeps_its_end_in_lists(store: Store) -> None:
    host = await a_registered_host(store)
    none, sent = await a_submitted_batch(store, jobs=1), await a_submitted_batch(store, jobs=1)
    await a_sent_instance(store, sent.batch_id, host)
    record = a_record(sent)
    assert record.terms is not None
    await store.forecasts.publish(replace(record, terms=replace(record.terms, sending_s=Seconds(0.0))))
    await store.ordering_rules.set_moved(sent.batch_id, later(NOW, 60.0))

    found = await pages(store, BatchSort.EXPECTED_END, not_sent=NotSent(all=True))

    assert found == [sent.batch_id, none.batch_id]


@pytest.mark.parametrize(
    ("sending_s", "is_moved", "is_shown"), [(60.0, True, False), (60.0, False, True), (600.0, False, False)]
)
async def test_end_that_counted_sending_is_not_in_lists_after_it(
    store: Store, sending_s: float, is_moved: bool, is_shown: bool
) -> None:
    host = await a_registered_host(store)
    none, sent = await a_submitted_batch(store, jobs=1), await a_submitted_batch(store, jobs=1)
    await a_sent_instance(store, sent.batch_id, host)
    record = a_record(sent)
    assert record.terms is not None
    await store.forecasts.publish(replace(record, terms=replace(record.terms, sending_s=Seconds(sending_s))))
    if is_moved:
        await store.ordering_rules.set_moved(sent.batch_id, later(NOW, 60.0))

    found = await pages(store, BatchSort.EXPECTED_END)

    assert found == ([sent.batch_id, none.batch_id] if is_shown else [none.batch_id, sent.batch_id])


async def test_counts_follow_the_filters(store: Store) -> None:
    ruled = await a_submitted_batch(store, jobs=1, name="Rush of May")
    other = await a_submitted_batch(store, jobs=1, name="census", qos=QoS.AFAP)
    ended = await a_submitted_batch(store, jobs=1, name="rush")
    await store.submissions.abort_batch(ended.batch_id, now=NOW)
    need = [ruled.batch_id, other.batch_id, ended.batch_id]

    for choice, count in (
        (BatchChoice(), 2),
        (BatchChoice(text="rUSH"), 1),
        (BatchChoice(qos=QoS.AFAP, state=BatchState.ABORTED), 1),
        (BatchChoice(submitter_id=ruled.submitter_id), 2),
        (BatchChoice(submitter_id=SubmitterId(99)), 0),
        (BatchChoice(queue="fast"), 0),
    ):
        found = await store.listings.counts(choice, NOW, need)
        assert (found.active, found.attention) == (count, count), choice


async def test_batches_are_filtered_by_state_qos_app_submitter_name(store: Store) -> None:
    ruled = await a_submitted_batch(store, jobs=1, name="Rush of May")
    other = await a_submitted_batch(store, jobs=1, name="census", qos=QoS.AFAP)
    await store.submissions.abort_batch(other.batch_id, now=NOW)

    for choice, chosen in (
        (BatchChoice(state=BatchState.ACTIVE), [ruled]),
        (BatchChoice(state=BatchState.ABORTED, qos=QoS.AFAP), [other]),
        (BatchChoice(qos=QoS.LONG_DEADLINE), []),
        (BatchChoice(text="rUSH"), [ruled]),
        (BatchChoice(ids=(ruled.batch_id, other.batch_id)), [ruled]),
        (BatchChoice(ids=()), []),
        (BatchChoice(account_id=ruled.account_id, queue="normal"), [other, ruled]),
        (BatchChoice(queue="fast"), []),
        (BatchChoice(blocked=True), []),
        (BatchChoice(app_id=ruled.app_id, submitter_id=ruled.submitter_id), [other, ruled]),
    ):
        assert await pages(store, BatchSort.NEWEST, choice) == [batch.batch_id for batch in chosen], choice


async def test_batches_are_listed_by_their_failed_jobs(store: Store) -> None:
    host = await a_registered_host(store)
    none, two, one = [await a_submitted_batch(store, jobs=2) for _ in range(3)]
    for batch in (two, two, one):
        await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host), to_state=S.FAILED))
        await store.unsettled.settle([failed(facts) for facts in await store.unsettled.unsettled(9, now=NOW)])

    few = [one.batch_id, two.batch_id]
    assert await pages(store, BatchSort.NEWEST, BatchChoice(failed=True)) == few
    assert await pages(store, BatchSort.OLDEST, BatchChoice(BatchState.ACTIVE, failed=True)) == [one.batch_id]
    assert await pages(store, BatchSort.FAILED) == [none.batch_id, one.batch_id]


async def test_a_selected_list_looks_at_few_batches_per_page(store: Store) -> None:
    batches = [await a_submitted_batch(store, jobs=1, name=f"run {number}") for number in range(7)]
    listed = cast(PostgresStore, store)
    for sort, matching in ((BatchSort.NEWEST, batches[1]), (BatchSort.OLDEST, batches[5])):
        choice, place, seen = BatchChoice(text=matching.name), None, list[list[int]]()
        while place is not None or not seen:
            found, place = await list_page(listed, choice, sort, after=place, limit=2, looked_at=3)
            seen.append(ids(list(found)))
        assert seen == [[], [matching.batch_id], []], sort
        everything, place = await list_page(listed, ALL, sort, after=None, limit=5, looked_at=3)
        assert (len(everything), place is None) == (5, False)
        active = BatchChoice(BatchState.ACTIVE, text=matching.name)
        found, place = await list_page(listed, active, sort, after=None, limit=5, looked_at=3)
        assert (ids(list(found)), place) == ([matching.batch_id], None)


async def test_a_listed_batch_has_its_names_and_counters(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)

    [found] = await store.listings.batches(ALL, BatchSort.NEWEST, after=None, limit=10)

    assert found == ListedBatch(batch, "pi", "default", "default")
    assert found.batch.counts.unsent == 3


async def test_batches_are_called_by_name(store: Store) -> None:
    rush = await a_submitted_batch(store, jobs=1, name="rush")
    await a_submitted_batch(store, jobs=1, name="census")

    assert await store.listings.names([BatchId(99), rush.batch_id]) == {rush.batch_id: "rush"}


async def test_totals_are_of_active_batches_by_app_and_promise(store: Store) -> None:
    await a_submitted_batch(store, jobs=3)
    batch = await a_submitted_batch(store, jobs=2)
    await a_submitted_batch(store, jobs=1, qos=QoS.AFAP)
    over = await a_submitted_batch(store, jobs=4)
    await store.submissions.abort_batch(over.batch_id, now=NOW)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    urgent, patient = await store.listings.totals()

    assert (urgent.qos, urgent.batches, urgent.jobs_total, urgent.unsent) == (QoS.AFAP, 1, 1, 1)
    assert (patient.app, patient.batches, patient.held, patient.jobs_total) == ("pi", 2, 0, 5)
    assert (patient.unsent, patient.in_progress, patient.sent, patient.jobs_validated) == (4, 1, 1, 0)


async def instances(store: Store, batch_id: BatchId, *states: InstanceState) -> list[ListedInstance]:
    """Return a batch's instances in some states, by default all, read two at a time."""
    found: list[ListedInstance] = []
    place = None
    while page := await store.listings.instances(batch_id, states or tuple(InstanceState), after=place, limit=2):
        found += page
        place = InstancePlace(page[-1].retries, page[-1].instance_id)
    return found


async def test_instances_of_batch_are_listed_by_state_retries_first(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=5)
    await a_submitted_batch(store, jobs=1)
    host = await a_registered_host(store)
    back, out = [await a_sent_instance(store, batch.batch_id, host, tight=True) for _ in range(2)]
    await report(store, host, a_report(back, to_state=S.FAILED, reason="it crashed"))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    again = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, NOW, new_instances=1, retries=1)
    assert await store.unsettled.settle([again]) == 1

    retry, *others = await instances(store, batch.batch_id)

    assert (retry.job_id, retry.state, retry.retries, retry.urgent) == (back.job_id, S.UNSENT, 1, True)
    assert [one.instance_id for one in others] == sorted(one.instance_id for one in others)
    assert [one.instance_id for one in await instances(store, batch.batch_id, S.UNSENT)] == [
        retry.instance_id,
        *(one.instance_id for one in others if one.state is S.UNSENT),
    ]
    assert {one.urgent for one in others} == {False}
    [crashed, held] = await instances(store, batch.batch_id, S.FAILED, S.IN_PROGRESS)
    assert (crashed.instance_id, crashed.reason, crashed.reported_at) == (
        back.instance_id,
        "it crashed",
        later(NOW, 3600.0),
    )
    assert held == ListedInstance(
        *(out.instance_id, out.job_id, S.IN_PROGRESS, 0, False, True),
        *(NOW, host.host_id, out.sent_at, out.due_at, None, ""),
    )
    assert await instances(store, batch.batch_id, S.VALID) == []
    assert await instances(store, BatchId(99)) == []


async def latest(store: Store, batch_id: BatchId, *states: InstanceState) -> list[ListedInstance]:
    """Return a batch's latest instances, read two at a time."""
    found: list[ListedInstance] = []
    while page := await store.listings.latest(
        batch_id, states, before=found[-1].instance_id if found else None, limit=2
    ):
        found += page
    return found


async def test_ended_instances_of_batch_are_listed_newest_first(store: Store) -> None:
    """Retried ones are among the others."""
    batch = await a_submitted_batch(store, jobs=5)
    await a_submitted_batch(store, jobs=1)
    for number in range(7):
        urgent = await store.waiting.urgent([batch.batch_id], 9)
        host = await a_registered_host(store)
        sent = await a_sent_instance(store, batch.batch_id, host, urgent[0] if urgent else None)
        await report(store, host, a_report(sent, to_state=S.FAILED if number < 2 else S.REPORTED))
        [facts] = await store.unsettled.unsettled(9, now=NOW)
        again = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, NOW, new_instances=1, retries=1)
        await store.unsettled.settle([again if number < 2 else valid(facts)])

    every = await instances(store, batch.batch_id)
    found = await latest(store, batch.batch_id, S.FAILED, S.REPORTED, S.VALID)

    assert {one.retries for one in found} == {0, 1}
    assert found == sorted(every, key=lambda one: -one.instance_id) and len(found) == 7
    await store.overdue.count_due(now=later(NOW, 2e6))
    await store.history.move_ended(before=later(NOW, 2e6), after=START, limit=2)
    assert await latest(store, batch.batch_id, S.FAILED, S.REPORTED, S.VALID) == found
    failures = [one for one in found if one.state is S.FAILED]
    assert len(failures) == 2 and await latest(store, batch.batch_id, S.FAILED) == failures


async def test_instances_of_the_history_are_listed_like_the_others(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(3)]
    await report(store, host, *(a_report(one) for one in sent))
    for facts in await store.unsettled.unsettled(9, now=NOW):
        await store.unsettled.settle([valid(facts)])
    before = await instances(store, batch.batch_id)
    await store.overdue.count_due(now=later(NOW, 2e6))

    moved = await store.history.move_ended(before=later(NOW, 2e6), after=START, limit=2)

    assert moved.jobs == 2
    assert await instances(store, batch.batch_id) == before
    assert await instances(store, batch.batch_id, S.VALID) == before
    assert {one.state for one in before} == {S.VALID}


async def test_what_a_host_has_is_listed(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)

    [held] = await store.listings.held_by(host.host_id, limit=10)

    assert (held.instance_id, held.app, held.due_at, held.batch_id) == (
        sent.instance_id,
        "pi",
        sent.due_at,
        batch.batch_id,
    )


async def test_the_deadline_of_an_active_batch_that_has_one_is_moved(store: Store) -> None:
    dated = await a_submitted_batch(store, jobs=1, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))
    patient = await a_submitted_batch(store, jobs=1)

    await store.ordering_rules.set_deadline(dated.batch_id, later(NOW, 90.0))

    assert (await store.views.batch(dated.batch_id)).deadline_at == later(NOW, 90.0)
    for other in (patient.batch_id, BatchId(99)):
        with pytest.raises(NotFoundError):
            await store.ordering_rules.set_deadline(other, later(NOW, 90.0))


async def test_process_shows_its_last_report(store: Store) -> None:
    await store.process_reports.note("a:1", "worker", {"sent": 1}, now=NOW)
    await store.process_reports.note("a:2", "background", {"duties": []}, now=later(NOW, 5.0))
    await store.process_reports.note("a:1", "worker", {"sent": 2}, now=later(NOW, 9.0))

    background, worker = await store.process_reports.since(NOW)

    assert (background.name, background.kind, background.report) == ("a:2", "background", {"duties": []})
    assert (worker.reported_at, worker.report) == (later(NOW, 9.0), {"sent": 2})
    assert [one.name for one in await store.process_reports.since(later(NOW, 6.0))] == ["a:1"]


async def test_failures_of_gone_workers_are_returned_separately(store: Store) -> None:
    told: dict[str, dict[str, object]] = {"b:1": {"failed": {"by_hour": {"1": {"503": 2}}}, "slots": 9}, "b:2": {}}
    for name, at_s in (("b:1", 0.0), ("b:2", 1.0)):
        await store.process_reports.note(name, "worker", told[name], now=later(NOW, at_s))
    await store.process_reports.note("b:3", "background", {"failed": {}}, now=NOW)
    await store.process_reports.note("a:9", "worker", {"failed": {"since_at": 7.0}}, now=later(NOW, 30.0))

    async def failed(since_s: float, before_s: float) -> list[object]:
        found = await store.process_reports.failures_of_gone(later(NOW, since_s), before=later(NOW, before_s))
        return list(found)

    assert await failed(0.0, 30.0) == [{"by_hour": {"1": {"503": 2}}}]
    assert await failed(0.0, 30.5) == [{"since_at": 7.0}, {"by_hour": {"1": {"503": 2}}}]
    assert await failed(0.5, 30.0) == []


async def test_last_deadline_of_each_duty_counts(store: Store) -> None:
    async def told(process: str, at_s: float, **deadlines: float | None) -> None:
        duties = [{"name": name, "deadline_at": at} for name, at in deadlines.items()]
        await store.process_reports.note(process, "background", {"duties": duties}, now=later(NOW, at_s))

    await told("a: background", 0.0, sweeper=NOW + 9.0, validator=NOW + 3.0, gates=None)
    await told("b: background", 5.0, sweeper=None, validator=NOW + 7.0, gates=None)
    await store.process_reports.note("a: worker 0", "worker", {"slots": 9}, now=NOW)

    assert await store.process_reports.duty_deadlines(NOW) == {"sweeper": NOW + 9.0, "validator": NOW + 7.0}
    assert await store.process_reports.duty_deadlines(later(NOW, 1.0)) == {"validator": NOW + 7.0}


async def test_a_simulation_is_asked_for_followed_and_kept(store: Store) -> None:
    first = await store.simulations.add({"scenario": "small"}, who="ada", now=NOW, heard_since=NOW, most=1)
    assert first is not None
    refused = await store.simulations.add({}, who="ben", now=later(NOW, 1.0), heard_since=NOW, most=1)

    assert refused is None
    assert await store.simulations.note(first, 0.5, now=later(NOW, 2.0))
    assert await store.simulations.end(first, SimulationState.DONE, now=later(NOW, 3.0), result={"rules": {}})
    assert not await store.simulations.note(first, 0.7, now=later(NOW, 4.0))
    found = await store.simulations.simulation(first)
    assert (found.state, found.done_fraction, found.result) == (SimulationState.DONE, 1.0, {"rules": {}})
    assert [one.result for one in await store.simulations.simulations(5)] == [None]
    with pytest.raises(NotFoundError):
        await store.simulations.simulation(77)


async def test_simulation_of_silent_process_does_not_block_others(store: Store) -> None:
    lost = await store.simulations.add({}, who="ada", now=NOW, heard_since=NOW, most=1)
    assert lost is not None

    much_later = later(NOW, 1000.0)
    assert (await store.simulations.simulation(lost)).is_lost(much_later)
    assert await store.simulations.add({}, who="ben", now=much_later, heard_since=later(NOW, 900.0), most=1)
