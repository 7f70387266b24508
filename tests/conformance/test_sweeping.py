"""Tests time-outs after grace, due dates counted once, and deadlines shifted by outages."""

from __future__ import annotations

import pytest

from domain.batches import BatchCounts
from domain.dispatch import Assignment, InstanceStep, RequestWrites
from domain.havs import HavEventKind
from domain.jobs import InstanceState, JobState
from domain.settlement import JobSettlement, OutageReport
from domain.units import DAY_S, HOUR_S, InstanceId, Instant, Seconds, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
)

S = InstanceState
DUE_AT = later(NOW, 1000.0)
TIMEOUT_AT = later(NOW, 1300.0)


async def under_way(store: Store, host: RegisteredHost, count: int = 1) -> list[Assignment]:
    """Send instances to the host, due at one-second intervals from DUE_AT on, each with 300 s of grace."""
    batch = await a_submitted_batch(store, jobs=count)
    return [
        await a_sent_instance(
            store,
            batch.batch_id,
            host,
            due_at=later(DUE_AT, float(number)),
            timeout_at=later(TIMEOUT_AT, float(number)),
        )
        for number in range(count)
    ]


def a_time_out(sent: Assignment, at: Instant = TIMEOUT_AT) -> InstanceStep:
    event = a_hav_event(sent, HavEventKind.TIMED_OUT, at=at, ln_turnaround_ratio=1.25)
    return InstanceStep(sent.instance_id, S.IN_PROGRESS, S.TIMED_OUT, turnaround_sample=1.25, hav_event=event)


async def overdue_ids(store: Store, now: Instant, limit: int = 99) -> list[InstanceId]:
    return [one.held.instance_id for one in await store.overdue.overdue(now=now, limit=limit)]


async def state_of(store: Store, sent: Assignment) -> InstanceState:
    job = await store.views.job(sent.job_id)
    return next(one.state for one in job.instances if one.instance_id == sent.instance_id)


# ---------------------------------------------------------------- time-outs


async def test_an_instance_is_overdue_when_its_grace_is_over(store: Store) -> None:
    [sent] = await under_way(store, await a_registered_host(store))

    assert await overdue_ids(store, later(TIMEOUT_AT, -0.5)) == []
    assert await overdue_ids(store, TIMEOUT_AT) == [sent.instance_id]


async def test_overdue_instances_stay_until_timed_out(store: Store) -> None:
    sent = await under_way(store, await a_registered_host(store), count=4)
    ids = [one.instance_id for one in sent]
    now = later(TIMEOUT_AT, 2.0)

    assert await overdue_ids(store, now, limit=2) == ids[:2]
    assert await overdue_ids(store, now) == ids[:3]
    assert await overdue_ids(store, now) == ids[:3]


async def test_overdue_work_says_who_has_it_and_how_large_it_is(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host)

    [one] = await store.overdue.overdue(now=TIMEOUT_AT, limit=9)

    assert one.held == (await read(store, host)).held[0]
    assert one.fpops_est_flop == 3.6e12


async def test_what_was_reported_is_not_overdue(store: Store) -> None:
    host = await a_registered_host(store)
    one, two = await under_way(store, host, count=2)
    await report(store, host, a_report(one))

    assert await overdue_ids(store, later(NOW, 1e6)) == [two.instance_id]


async def test_a_time_out_is_a_retry_a_missed_deadline_and_a_sample(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)

    assert await store.overdue.time_out([a_time_out(sent)], now=TIMEOUT_AT) == 1

    assert await state_of(store, sent) is S.TIMED_OUT
    counts = (await store.views.batch(sent.batch_id)).counts
    assert counts == BatchCounts(jobs_total=1, retries=1, sent=1, deadlines_missed=1)
    view = await read(store, host, sent.instance_id)
    assert view.held == ()
    assert view.reported[sent.instance_id].turnaround_sample == 1.25
    assert view.reported[sent.instance_id].timeout_at == TIMEOUT_AT
    row = view.havs[sent.app_version_id]
    assert (row.n_timeout, row.relaxed.n, row.relaxed.total) == (1, 1.0, 1.25)
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    assert (facts.job_id, facts.instances[0].timeout_at) == (sent.job_id, TIMEOUT_AT)
    assert await overdue_ids(store, later(NOW, 1e6)) == []


async def test_a_time_out_that_is_not_due_yet_is_left_out(store: Store) -> None:
    [sent] = await under_way(store, await a_registered_host(store))

    assert await store.overdue.time_out([a_time_out(sent)], now=later(TIMEOUT_AT, -1.0)) == 0
    assert await state_of(store, sent) is S.IN_PROGRESS


async def test_time_out_of_reported_instance_is_skipped(store: Store) -> None:
    host = await a_registered_host(store)
    one, two = await under_way(store, host, count=2)
    await report(store, host, a_report(one))
    steps = [a_time_out(one), a_time_out(two), InstanceStep(InstanceId(999), S.IN_PROGRESS, S.TIMED_OUT)]

    assert await store.overdue.time_out(steps, now=later(TIMEOUT_AT, 5.0)) == 1

    assert await state_of(store, one) is S.REPORTED
    assert (await read(store, host)).havs[one.app_version_id].n_timeout == 1


async def test_late_result_removes_retry_and_censored_sample(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await store.overdue.time_out([a_time_out(sent)], now=TIMEOUT_AT)
    at = later(TIMEOUT_AT, 20 * DAY_S)
    event = a_hav_event(sent, HavEventKind.VALID, at=at, ln_turnaround_ratio=1.5, replaces=1.25, replaces_at=TIMEOUT_AT)

    await report(
        store, host, a_report(sent, from_state=S.TIMED_OUT, reported_at=at, turnaround_sample=1.5, hav_event=event)
    )

    assert await state_of(store, sent) is S.REPORTED
    counts = (await store.views.batch(sent.batch_id)).counts
    assert counts == BatchCounts(jobs_total=1, sent=1, reported=1, deadlines_missed=1)
    row = (await read(store, host)).havs[sent.app_version_id]
    assert (row.n_timeout, row.n_valid) == (0, 1)
    assert (row.relaxed.n, row.relaxed.total) == pytest.approx((1.0, 1.5), rel=1e-12)


async def test_a_report_for_the_state_before_the_time_out_is_left_out(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await store.overdue.time_out([a_time_out(sent)], now=TIMEOUT_AT)

    await report(store, host, a_report(sent, reported_at=later(TIMEOUT_AT, 1.0)))

    assert await state_of(store, sent) is S.TIMED_OUT


async def test_time_out_after_read_makes_settlement_stale(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await store.overdue.time_out([a_time_out(sent)], now=TIMEOUT_AT)
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await report(store, host, a_report(sent, from_state=S.TIMED_OUT, reported_at=later(TIMEOUT_AT, 1.0)))

    retry = JobSettlement(facts.job_id, facts.serial, JobState.OPEN, TIMEOUT_AT, new_instances=1, retries=1)

    assert await store.unsettled.settle([retry]) == 0
    assert (await store.views.batch(sent.batch_id)).counts.unsent == 0


async def test_a_detached_hosts_instances_do_not_time_out(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host, count=2)

    await store.ledger.write(RequestWrites(host.host, detach=True))

    assert await overdue_ids(store, later(NOW, 1e6)) == []


# ---------------------------------------------------------------- due dates


async def test_each_due_date_that_passes_is_counted_once(store: Store) -> None:
    host = await a_registered_host(store)
    sent = await under_way(store, host, count=4)
    version_id = sent[0].app_version_id

    for now, newly, total in ((-1.0, 0, 0), (1.0, 2, 2), (1.0, 0, 2), (1.5, 0, 2), (99.0, 2, 4), (999.0, 0, 4)):
        assert await store.overdue.count_due(now=later(DUE_AT, now)) == newly
        assert (await read(store, host)).havs[version_id].n_due == total


async def test_due_date_counts_for_finished_instances_too(store: Store) -> None:
    host = await a_registered_host(store)
    one, two, _ = await under_way(store, host, count=3)
    await store.overdue.count_due(now=NOW)
    await report(store, host, a_report(one))
    await store.overdue.time_out([a_time_out(two)], now=later(TIMEOUT_AT, 5.0))

    assert await store.overdue.count_due(now=later(TIMEOUT_AT, 5.0)) == 3
    assert (await read(store, host)).havs[one.app_version_id].n_due == 3


async def test_due_dates_are_counted_for_the_host_that_has_them(store: Store) -> None:
    one, two = await a_registered_host(store), await a_registered_host(store)
    await under_way(store, one, count=1)
    [sent, _] = await under_way(store, two, count=2)
    await store.overdue.count_due(now=NOW)

    assert await store.overdue.count_due(now=later(DUE_AT, 9.0)) == 3

    assert (await read(store, one)).havs[sent.app_version_id].n_due == 1
    assert (await read(store, two)).havs[sent.app_version_id].n_due == 2


async def test_due_dates_count_once_after_fast_clock(store: Store) -> None:
    """Instances counted early are subtracted, and later ones are counted, too."""
    host = await a_registered_host(store)
    await store.overdue.count_due(now=NOW)
    [early, _] = await under_way(store, host, count=2)
    assert await store.overdue.count_due(now=later(DUE_AT, 2 * DAY_S)) == 2

    assert await store.overdue.count_due(now=later(NOW, 60.0)) == 0
    assert (await read(store, host)).havs[early.app_version_id].n_due == 0
    other = await a_registered_host(store)
    await under_way(store, other, count=1)

    assert await store.overdue.count_due(now=later(DUE_AT, 1.0)) == 3
    assert await store.overdue.count_due(now=later(DUE_AT, 3 * DAY_S)) == 0
    assert (await read(store, host)).havs[early.app_version_id].n_due == 2
    assert (await read(store, other)).havs[early.app_version_id].n_due == 1


async def test_skewed_nodes_count_each_due_date_once(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await store.overdue.count_due(now=NOW)

    counted = [await store.overdue.count_due(now=later(DUE_AT, after_s)) for after_s in (2.0, -1.0, 1.0, 3.0)]

    assert counted == [1, 0, 0, 0]
    assert (await read(store, host)).havs[sent.app_version_id].n_due == 1


# ---------------------------------------------------------------- outages


async def alive(store: Store, after_s: float, limit: int = 100) -> OutageReport:
    """Record at NOW + after_s that the project is alive; an hour of silence is an outage."""
    return await store.outages.note_alive(now=later(NOW, after_s), outage_at_least_s=HOUR_S, limit=limit)


async def due_dates(store: Store, host: RegisteredHost) -> list[float]:
    """Return the due dates of the host's instances in progress, in seconds from DUE_AT."""
    return [held.due_at - DUE_AT for held in (await read(store, host)).held]


async def test_the_first_note_of_life_moves_nothing(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host)

    assert await alive(store, 9e6) == OutageReport()
    assert await due_dates(store, host) == [0.0]


async def test_notes_that_are_close_together_move_nothing(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host)
    for after_s in (0.0, 3599.0, 7198.0):
        assert await alive(store, after_s) == OutageReport()
    assert await due_dates(store, host) == [0.0]


async def test_small_backward_clock_step_shifts_nothing(store: Store) -> None:
    await under_way(store, await a_registered_host(store))
    for after_s in (3000.0, 0.0, 6599.0):
        assert await alive(store, after_s) == OutageReport()


async def test_corrected_slow_clock_extends_due_dates(store: Store) -> None:
    """It is unknown which clock was right: it may as well have been an outage."""
    await under_way(store, await a_registered_host(store))
    assert [(await alive(store, after_s)).by_s for after_s in (5000.0, 0.0, 5010.0)] == [0.0, 0.0, 5010.0]


async def test_batches_are_sent_again_after_an_outage(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    moved_at = []
    for after_s in (10.0, 3000.0, 8000.0):
        await alive(store, after_s)
        standing = await store.forecasts.standing(batch.batch_id)
        assert standing is not None
        moved_at.append(standing.age.moved_at)

    assert moved_at == [None, None, NOW + 8000.0]


async def test_an_outage_moves_the_deadlines_that_were_still_open(store: Store) -> None:
    host = await a_registered_host(store)
    early, middle, done = await under_way(store, host, count=3)
    await report(store, host, a_report(done))
    await alive(store, 10.0)

    assert await alive(store, 5010.0) == OutageReport(Seconds(5000.0), moved=2)

    assert await due_dates(store, host) == [5000.0, 5001.0]
    assert (await read(store, host, done.instance_id)).reported[done.instance_id].held.due_at == DUE_AT + 2.0
    assert await overdue_ids(store, later(TIMEOUT_AT, 4999.0)) == []
    assert await overdue_ids(store, later(TIMEOUT_AT, 5001.0)) == [early.instance_id, middle.instance_id]
    assert await alive(store, 5020.0) == OutageReport()


async def test_instances_past_grace_before_outage_are_not_shifted(store: Store) -> None:
    [sent] = await under_way(store, await a_registered_host(store))
    await alive(store, 1300.0)

    assert (await alive(store, 9000.0)).moved == 0
    assert await overdue_ids(store, TIMEOUT_AT) == [sent.instance_id]


async def test_what_was_sent_after_the_outage_is_not_moved(store: Store) -> None:
    """Workers may serve again before the project is recorded as alive."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    await alive(store, 10.0)
    for sent_at in (10.0, 5009.0):
        await a_sent_instance(store, batch.batch_id, host, sent_at=later(NOW, sent_at), due_at=later(DUE_AT, 9000.0))

    assert (await alive(store, 5010.0)).moved == 1
    assert await due_dates(store, host) == [14_000.0, 9000.0]


async def test_due_dates_move_some_at_a_time_and_each_once(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host, count=5)
    await alive(store, 0.0)

    reports = [await alive(store, 5000.0 + number, limit=2) for number in range(4)]

    assert [(one.moved, one.more) for one in reports] == [(2, True), (2, True), (1, False), (0, False)]
    assert [one.by_s for one in reports] == [5000.0, 5000.0, 5000.0, 0.0]
    assert await due_dates(store, host) == [5000.0, 5001.0, 5002.0, 5003.0, 5004.0]


async def test_due_dates_that_fill_the_last_part_are_all_moved(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host, count=4)
    await alive(store, 0.0)

    reports = [await alive(store, 5000.0 + number, limit=2) for number in range(3)]

    assert sum(one.moved for one in reports) == 4
    assert not reports[-1].more
    assert await due_dates(store, host) == [5000.0, 5001.0, 5002.0, 5003.0]


async def test_overlapping_outages_shift_by_both(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host, count=3)
    await alive(store, 0.0)
    await alive(store, 5000.0, limit=2)

    more = [await alive(store, 11_000.0 + number, limit=2) for number in range(3)]

    assert [(one.by_s, one.moved, one.more) for one in more] == [
        (5000.0, 1, True),
        (6000.0, 2, True),
        (6000.0, 1, False),
    ]
    assert await due_dates(store, host) == [11_000.0, 11_001.0, 11_002.0]


async def test_instance_within_grace_is_shifted_and_counted_once(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await alive(store, 1020.0)
    assert await store.overdue.count_due(now=later(DUE_AT, 10.0)) == 1

    assert (await alive(store, 6020.0)).moved == 1

    assert (await read(store, host)).havs[sent.app_version_id].n_due == 0
    assert await store.overdue.count_due(now=later(DUE_AT, 5001.0)) == 1
    assert (await read(store, host)).havs[sent.app_version_id].n_due == 1


async def test_a_moved_due_date_is_counted_once_when_it_passes(store: Store) -> None:
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)
    await store.overdue.count_due(now=NOW)
    await alive(store, 0.0)
    await alive(store, 5000.0)

    assert await store.overdue.count_due(now=later(DUE_AT, 4999.0)) == 0
    assert await store.overdue.count_due(now=later(DUE_AT, 5000.0)) == 1
    assert await store.overdue.count_due(now=later(DUE_AT, 9999.0)) == 0
    assert (await read(store, host)).havs[sent.app_version_id].n_due == 1


async def test_two_outages_move_twice(store: Store) -> None:
    host = await a_registered_host(store)
    await under_way(store, host)

    for after_s in (0.0, 4000.0, 9000.0):
        await alive(store, after_s)

    assert await due_dates(store, host) == [9000.0]
    assert len(await overdue_ids(store, later(TIMEOUT_AT, 9000.0))) == 1


async def test_outages_around_a_fast_clock_are_handled_once(store: Store) -> None:
    """A clock that was two days ahead has left a record two days ahead; it is ignored from the next one on."""
    await alive(store, 0.0)
    await alive(store, 2 * DAY_S)
    await alive(store, 10.0)
    host = await a_registered_host(store)
    [sent] = await under_way(store, host)

    assert await alive(store, 20.0) == OutageReport()
    assert await alive(store, 20.0 + 2 * HOUR_S) == OutageReport(Seconds(2 * HOUR_S), 1)
    assert [one.due_at for one in (await read(store, host)).held] == [later(DUE_AT, 2 * HOUR_S)]
    assert sent.due_at == DUE_AT
