"""Tests the estimator's input for a batch: every store returns the same tables and the same snapshot."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from batch_estimator import filling
from batch_estimator.estimate import estimate
from batch_estimator.sending import is_waiting
from batch_estimator.snapshot import AppQueue, BatchSnapshot, InstanceStanding
from domain.apps import CPU, NVIDIA, PlanClass, VersionState
from domain.batches import QoS
from domain.forecasting import FIRST_PLACE, MOVED_S, NEVER_MOVED, SendPlace
from domain.havs import HavEvent, HavEventKind
from domain.history import START
from domain.jobs import InstanceState
from domain.ordered_work import StoredPlace
from domain.ranking import CutPoints, HostStatisticsRun
from domain.restrictions import Restricted, Restriction
from domain.settings import Settings
from domain.settlement import JobSettlement
from domain.units import DAY_S, HOUR_S, AppId, BatchId, Flop, Instant, Seconds, later
from tests.builders import NOW, a_job_class
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_batch_with_two_quorums,
    a_hav_event,
    a_registered_app,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
)

AT = later(NOW, 2 * DAY_S)  # after every time-out of an instance sent at NOW


async def a_host(store: Store) -> RegisteredHost:
    return await a_registered_host(store, last_rpc_at=NOW)


async def an_app(store: Store, name: str) -> AppId:
    """Register an app whose jobs are sent."""
    app_id = (await a_registered_app(store, name)).app_id
    await a_registered_version(store, app_id)
    return app_id


async def snapshot_of(store: Store, batch_id: BatchId, now: Instant = AT) -> BatchSnapshot:
    tables = await store.forecasting.of_batch(batch_id, now=now)
    assert tables is not None
    return filling.snapshot_of(tables, now, Settings())


async def a_valid_result(store: Store, batch_id: BatchId, host: RegisteredHost, ln_turnaround: float) -> None:
    sent = await a_sent_instance(store, batch_id, host)
    back_at = later(sent.sent_at, math.exp(ln_turnaround))
    event = a_hav_event(sent, at=back_at, ln_turnaround=ln_turnaround, ln_turnaround_ratio=0.0)
    back = a_report(sent, reported_at=back_at, to_state=InstanceState.VALID, hav_event=event)
    await report(store, host, back)


async def test_only_an_active_batch_has_tables(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    assert await store.forecasting.of_batch(BatchId(4711), now=AT) is None
    assert await store.forecasting.of_batch(batch.batch_id, now=AT) is None


async def test_new_batch_is_forecast_by_terms_and_active_hosts(store: Store) -> None:
    await a_host(store)
    await a_host(store)
    await a_registered_host(store, last_rpc_at=later(NOW, -30 * DAY_S))
    batch = await a_submitted_batch(store, jobs=3, quorum=2, job_class=a_job_class(quorum=2), copies=2)

    snapshot = await snapshot_of(store, batch.batch_id)

    grace_s = 0.1 * 7 * DAY_S
    assert (snapshot.submitted_at, snapshot.delay_bound_s) == (NOW, 7 * DAY_S + grace_s)
    assert snapshot.jobs.needed.tolist() == [2] * 3
    assert snapshot.active_hosts == 2 and snapshot.median_flop_per_s > 0
    assert snapshot.jobs.is_open.tolist() == [True] * 3
    assert sorted(snapshot.instances.job.tolist()) == [0, 0, 1, 1, 2, 2]
    assert set(snapshot.instances.standing.tolist()) == {InstanceStanding.UNSENT}
    assert set(snapshot.instances.host_id.tolist()) == {-1}
    assert np.isnan(snapshot.instances.sent_at).all() and math.isnan(snapshot.mean_ln_fpops)
    assert len(snapshot.havs.host_id) == len(snapshot.sent.host_id) == 0
    assert estimate(snapshot).q90_at > AT


async def test_an_instance_has_its_standing_and_its_instants(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=4)
    host, other, third = [await a_host(store) for _ in range(3)]
    await a_valid_result(store, batch.batch_id, host, 8.0)
    await a_sent_instance(store, batch.batch_id, other)
    failed = await a_sent_instance(store, batch.batch_id, third)
    await report(store, third, a_report(failed, to_state=InstanceState.FAILED))

    rows = (await snapshot_of(store, batch.batch_id)).instances

    by_host = {
        host_id: (standing, sent_at, timeout_at, reported_at)
        for host_id, standing, sent_at, timeout_at, reported_at in zip(
            rows.host_id.tolist(), rows.standing.tolist(), rows.sent_at, rows.timeout_at, rows.reported_at, strict=True
        )
    }
    timeout_at = NOW + DAY_S + 3600.0
    assert by_host[host.host_id] == (InstanceStanding.SUCCESS, NOW, timeout_at, pytest.approx(NOW + math.exp(8.0)))
    assert by_host[other.host_id] == (InstanceStanding.IN_PROGRESS, NOW, timeout_at, pytest.approx(np.nan, nan_ok=True))
    assert by_host[third.host_id] == (InstanceStanding.ERROR, NOW, timeout_at, NOW + 3600.0)
    assert by_host[-1][0] == InstanceStanding.UNSENT
    assert set(rows.created_at.tolist()) == {NOW}


async def test_a_retry_was_created_when_its_job_was_settled(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_host(store)
    failed = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(failed, to_state=InstanceState.FAILED))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    again = JobSettlement(facts.job_id, facts.serial, facts.state, later(NOW, 7200.0), new_instances=1, retries=1)
    await store.unsettled.settle([again])

    rows = (await snapshot_of(store, batch.batch_id)).instances

    assert dict(zip(rows.standing.tolist(), rows.created_at.tolist(), strict=True)) == {
        InstanceStanding.ERROR: NOW,
        InstanceStanding.UNSENT: NOW + 7200.0,
    }


async def test_the_batchs_own_rows_are_not_in_its_hosts_sums(store: Store) -> None:
    host = await a_host(store)
    await store.overdue.count_due(now=NOW)
    other_batch = await a_submitted_batch(store, jobs=2)
    batch = await a_submitted_batch(store, jobs=4)
    await a_valid_result(store, other_batch.batch_id, host, 9.0)
    await a_valid_result(store, batch.batch_id, host, 7.0)
    failed = await a_sent_instance(store, batch.batch_id, host)
    error = HavEvent(host.host_id, failed.app_version_id, HavEventKind.ERROR, NOW)
    await report(store, host, a_report(failed, to_state=InstanceState.FAILED, hav_event=error))
    await store.overdue.count_due(now=AT)

    havs = (await snapshot_of(store, batch.batch_id)).havs

    [at] = np.flatnonzero(havs.host_id == host.host_id)
    assert (havs.n_success[at], havs.n_error[at], havs.n_timeout[at], havs.n_due[at]) == (1, 0, 0, 1)
    assert (havs.sum_ln[at], havs.sum_ln_sq[at]) == (pytest.approx(9.0), pytest.approx(81.0))
    assert (havs.last_rpc_at[at], havs.weight[at]) == (NOW, 1.0)
    assert len(havs.host_id) == 1


async def test_a_host_without_other_work_has_a_row_of_zeros(store: Store) -> None:
    host = await a_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    await a_valid_result(store, (await a_submitted_batch(store, jobs=1)).batch_id, await a_host(store), 8.0)
    sent = await a_sent_instance(store, batch.batch_id, host)

    havs = (await snapshot_of(store, batch.batch_id)).havs

    [at] = np.flatnonzero(havs.host_id == host.host_id)
    assert havs.app_version_id[at] == sent.app_version_id
    assert (havs.n_success[at], havs.sum_ln[at], havs.n_due[at]) == (0, 0.0, 0)
    assert sorted(havs.weight.tolist()) == [1.0, 1.0]


async def test_history_is_the_apps_other_batches_by_dispatch_time(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    other = await a_submitted_batch(store, jobs=3, job_class=a_job_class(fpops_est_flop=1e12))
    host = await a_host(store)
    await a_sent_instance(store, batch.batch_id, host)
    await a_valid_result(store, other.batch_id, host, 8.0)
    await a_sent_instance(store, other.batch_id, host)
    await a_sent_instance(store, other.batch_id, host, sent_at=later(AT, -31 * DAY_S))
    elsewhere = await a_registered_app(store, "e")
    of_e = await a_registered_version(store, elsewhere.app_id)
    foreign = await a_submitted_batch(store, jobs=1, app_id=elsewhere.app_id)
    await a_sent_instance(store, foreign.batch_id, host, app_version_id=of_e.app_version_id)

    snapshot = await snapshot_of(store, batch.batch_id)

    assert sorted(snapshot.sent.standing.tolist()) == [InstanceStanding.IN_PROGRESS, InstanceStanding.SUCCESS]
    assert set(snapshot.sent.sent_at.tolist()) == {NOW}
    assert len(set(snapshot.sent.page.tolist())) == 2  # all rows are read, so each is chosen for itself
    assert snapshot.mean_ln_fpops == pytest.approx(math.log(1e12))
    assert of_e.app_version_id not in snapshot.havs.app_version_id.tolist()


async def test_work_in_the_history_is_still_sampled(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    host = await a_host(store)
    ended = await a_submitted_batch(store, jobs=1)
    await a_valid_result(store, ended.batch_id, host, 8.0)
    await store.submissions.abort_batch(ended.batch_id, now=later(NOW, 3600.0))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([JobSettlement(facts.job_id, facts.serial, facts.state, NOW)])
    await store.overdue.count_due(now=AT)
    moved = await store.history.move_ended(before=AT, after=START, limit=9)
    assert moved.jobs == 1

    sent = (await snapshot_of(store, batch.batch_id)).sent

    assert sent.standing.tolist() == [InstanceStanding.SUCCESS]
    assert sent.host_id.tolist() == [host.host_id]


async def test_new_batch_uses_the_apps_hosts_and_dispatches(store: Store) -> None:
    host, other = await a_host(store), await a_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    await a_valid_result(store, batch.batch_id, host, 8.0)
    await a_sent_instance(store, batch.batch_id, other)

    tables = await store.forecasting.of_app(batch.app_id, FIRST_PLACE, now=AT)

    assert tables is not None
    assert (tables.active_hosts, tables.others_weight) == (2, 1.0)
    assert tables.median_flop_per_s > 0
    assert sorted(tables.sent["host_id"].tolist()) == [host.host_id, other.host_id]
    assert sorted(tables.havs["host_id"].tolist()) == [host.host_id, other.host_id]
    assert host.host_id in tables.others["host_id"].tolist()
    assert await store.forecasting.of_app(AppId(4711), FIRST_PLACE, now=AT) is None


BATCH_FLOP = 3.6e13  # of a submitted batch with any number of jobs


async def test_job_needs_class_quorum_or_adaptive_copies(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    await a_sent_instance(store, batch.batch_id, await a_host(store), copies=2)

    assert (await snapshot_of(store, batch.batch_id)).jobs.needed.tolist() == [2, 1]


async def test_waiting_batch_has_work_ahead(store: Store) -> None:
    elsewhere = await an_app(store, "e")
    await an_app(store, "pi")
    await a_submitted_batch(store, jobs=5)
    await a_submitted_batch(store, jobs=3, app_id=elsewhere)
    batch = await a_submitted_batch(store, jobs=2)
    await a_submitted_batch(store, jobs=4)

    waiting = (await snapshot_of(store, batch.batch_id)).queue
    await a_sent_instance(store, batch.batch_id, await a_host(store))
    begun = (await snapshot_of(store, batch.batch_id)).queue

    assert replace(waiting, flop_of_others=0.0) == AppQueue(ahead=5, ahead_of_others=3)
    assert waiting.flop_of_others == pytest.approx(BATCH_FLOP)
    assert begun == AppQueue()


async def test_work_of_two_quorums_counts_each_instance(store: Store) -> None:
    """Nine jobs of quorum 1 and one smaller one of quorum 3 are 12 instances."""
    mixed = await a_batch_with_two_quorums(store, (9, 1), (Flop(3e12), Flop(1e12)))
    other = await a_submitted_batch(store, app_id=await an_app(store, "elsewhere"), order_tier=1)
    await an_app(store, "pi")

    queue = (await snapshot_of(store, other.batch_id)).queue

    assert queue.ahead_of_others == 12 and queue.flop_of_others == pytest.approx(3e13)
    [size] = (await store.insight.job_sizes([mixed.batch_id])).values()
    assert size.flop == pytest.approx(2.5e12) and size.quorum == 3


async def test_work_for_gpus_needs_no_processor(store: Store) -> None:
    """Another app runs on GPUs only: its jobs count, but not what they compute."""
    gpus = (await a_registered_app(store, "gpus")).app_id
    cuda = PlanClass("cuda", gpu_type=NVIDIA)
    await store.applications.put_plan_class(cuda)
    await a_registered_version(store, gpus, plan_class=cuda)
    await an_app(store, "pi")
    await a_submitted_batch(store, jobs=3, app_id=gpus)
    batch = await a_submitted_batch(store, jobs=2)

    assert (await snapshot_of(store, batch.batch_id)).queue == AppQueue(ahead_of_others=3)


async def test_withdrawn_versions_are_named(store: Store) -> None:
    app_id = await an_app(store, "pi")
    states = VersionState.WITHDRAWN, VersionState.ABORTED, VersionState.DEPRECATED
    gone = [await a_registered_version(store, app_id) for _ in states]
    for version, state in zip(gone, states, strict=True):
        await store.applications.set_version_state(version.app_version_id, state)
    batch = await a_submitted_batch(store, jobs=2)

    planned = await store.forecasting.of_app(app_id, FIRST_PLACE, now=AT)

    named = frozenset(version.app_version_id for version in gone[:2])
    assert planned is not None and planned.withdrawn == named
    assert (await snapshot_of(store, batch.batch_id)).withdrawn == named


@pytest.mark.parametrize("deprecated", [False, True])
async def test_work_of_a_lost_app_is_not_ahead(store: Store, deprecated: bool) -> None:
    """The app has no version, or is deprecated."""
    lost = await a_registered_app(store, "lost")
    if deprecated:
        await a_registered_version(store, lost.app_id)
        await store.applications.set_app(replace(lost, deprecated=True))
    await a_submitted_batch(store, jobs=5, app_id=lost.app_id)
    await an_app(store, "pi")
    await a_submitted_batch(store, jobs=3)
    batch = await a_submitted_batch(store, jobs=2)
    last = SendPlace(QoS.THROUGHPUT, None, unpaid=False, tier=batch.order_tier + 1, key=0.0)

    tables = await store.forecasting.of_app(batch.app_id, last, now=AT)

    assert (await snapshot_of(store, batch.batch_id)).queue == AppQueue(ahead=3)
    assert tables is not None and (tables.ahead, tables.ahead_of_others) == (5, 0)


async def test_moved_batch_waits_again_at_its_place(store: Store) -> None:
    await a_submitted_batch(store, jobs=5)
    batch = await a_submitted_batch(store, jobs=3)
    await a_sent_instance(store, batch.batch_id, await a_host(store))
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 60.0))

    before, after = [
        await snapshot_of(store, batch.batch_id, later(NOW, 59.0 + MOVED_S + later_s)) for later_s in (0.0, 1.0)
    ]

    assert (before.moved_at, before.queue.ahead, is_waiting(before)) == (NEVER_MOVED, 0, False)
    assert (after.moved_at, after.queue.ahead, is_waiting(after)) == (NOW + 60.0, 5, True)


async def test_a_batch_at_a_lower_tier_is_moved_ahead(store: Store) -> None:
    """Of all its places before, until a pause ends."""
    batch = await a_submitted_batch(store, jobs=3)
    seen = [(await snapshot_of(store, batch.batch_id)).moved_ahead]
    for tier in (40, 0, -40, 0):
        await store.ordering_rules.set_moved(batch.batch_id, NOW)
        await store.ordering.move([StoredPlace(batch.batch_id, tier, 0.0)])
        seen.append((await snapshot_of(store, batch.batch_id)).moved_ahead)
    await store.restrictions.put(Restriction(Restricted.BATCH, str(batch.batch_id), 0, "", "ada", NOW))
    await store.restrictions.lift(Restricted.BATCH, str(batch.batch_id), now=later(NOW, DAY_S))
    seen.append((await snapshot_of(store, batch.batch_id)).moved_ahead)

    assert seen == [None, False, None, True, False, None]


async def test_pending_move_counts_the_last_quarter_of_an_hour(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await a_sent_instance(store, batch.batch_id, await a_host(store), sent_at=later(NOW, DAY_S - 600.0))
    unmoved = await snapshot_of(store, batch.batch_id, later(NOW, DAY_S))
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, DAY_S + 60.0))

    moving = await snapshot_of(store, batch.batch_id, later(NOW, DAY_S))

    assert (unmoved.moved_at, is_waiting(unmoved)) == (NEVER_MOVED, False)
    assert (moving.moved_at, is_waiting(moving)) == (NOW + DAY_S - 900.0, False)


@pytest.mark.parametrize("kind", [Restricted.BATCH, Restricted.APP, Restricted.QUEUE, None])
async def test_pause_does_not_count_as_slow_sending(store: Store, kind: Restricted | None) -> None:
    """None: the whole project is paused."""
    batch = await a_submitted_batch(store, jobs=3, queue="bonus")
    await a_sent_instance(store, batch.batch_id, await a_host(store))
    before = await snapshot_of(store, batch.batch_id)
    if kind is None:
        await store.settings.set_setting("project.down", True, now=AT, who="ops", why="disk full")
    else:
        names = {Restricted.BATCH: batch.batch_id, Restricted.APP: batch.app_id, Restricted.QUEUE: "bonus"}
        await store.restrictions.put(Restriction(kind, str(names[kind]), 0, "disk full", "ops", AT))

    paused = await snapshot_of(store, batch.batch_id)

    assert (is_waiting(before), is_waiting(paused)) == (False, True)


async def test_new_batch_waits_for_the_work_before_its_place(store: Store) -> None:
    elsewhere = await an_app(store, "elsewhere")
    await an_app(store, "pi")
    first = await a_submitted_batch(store, jobs=5, order_tier=3, order_key=1.0)
    await a_submitted_batch(store, jobs=3, app_id=elsewhere, order_tier=3, order_key=2.0)
    last = await a_submitted_batch(store, jobs=9, order_tier=3, order_key=4.0)
    at = SendPlace(QoS.THROUGHPUT, None, unpaid=False, tier=3, key=3.0)

    async def ahead(place: SendPlace) -> tuple[int, int]:
        tables = await store.forecasting.of_app(first.app_id, place, now=AT)
        assert tables is not None
        assert tables.flop_of_others == pytest.approx(BATCH_FLOP if tables.ahead_of_others else 0.0)
        return tables.ahead, tables.ahead_of_others

    assert await ahead(at) == (5, 3)
    assert await ahead(replace(at, qos=QoS.AFAP)) == await ahead(FIRST_PLACE) == (0, 0)
    assert await ahead(replace(at, key=4.0)) == (14, 3)  # a new batch comes after those at its place
    assert await ahead(replace(at, key=4.0, batch_id=last.batch_id)) == (5, 3)
    assert await ahead(replace(at, tier=4)) == await ahead(replace(at, tier=0, unpaid=True)) == (14, 3)


async def publish_retry_hour(store: Store, app_id: AppId) -> None:
    """Publish a retry turnaround of one hour for the app."""
    cuts = CutPoints(app_id, CPU, NOW, 9, (), (), retry_turnaround_s=Seconds(HOUR_S))
    async with store.generations.new(now=NOW, full=False) as run:
        assert run is not None
        await run.publish([cuts], HostStatisticsRun(1, full=False, started_at=NOW, seconds=Seconds(1.0)))


async def test_deadline_precedes_other_work_only_when_near(store: Store) -> None:
    """Near is four times the retry turnaround; until then it keeps its place, and later the others are behind it."""
    await an_app(store, "pi")
    other = await a_submitted_batch(store, jobs=5, order_key=1.0)
    due_at = later(NOW, 10 * HOUR_S)
    due = await a_submitted_batch(
        store, jobs=2, app_id=other.app_id, order_key=2.0, qos=QoS.SHORT_DEADLINE, deadline_at=due_at
    )
    await publish_retry_hour(store, other.app_id)

    early, late = [(await snapshot_of(store, due.batch_id, later(NOW, at_s))).queue for at_s in (60.0, 8 * HOUR_S)]
    behind = (await snapshot_of(store, other.batch_id, later(NOW, 8 * HOUR_S))).queue

    assert early == AppQueue(ahead=5, first_s=6 * HOUR_S - 60.0)
    assert (late, behind) == (AppQueue(), AppQueue(ahead=2))


async def test_begun_batch_with_a_deadline_is_sent_first_later(store: Store) -> None:
    """Its retries wait at most until then."""
    batch = await a_submitted_batch(store, jobs=3, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 10 * HOUR_S))
    await publish_retry_hour(store, batch.app_id)
    waiting = (await snapshot_of(store, batch.batch_id, later(NOW, 60.0))).queue
    await a_sent_instance(store, batch.batch_id, await a_host(store))

    begun = (await snapshot_of(store, batch.batch_id, later(NOW, 60.0))).queue

    assert begun == waiting == AppQueue(first_s=6 * HOUR_S - 60.0)


async def test_afap_and_deadlines_go_first_and_unpaid_last(store: Store) -> None:
    """A deadline is near while the app's retry turnaround is unknown. Among those sent first, the order decides, but
    late batches are last.
    """
    sizes = {"rest": 5, "unpaid": 3, "late": 11, "dated": 2, "afap": 7}
    await an_app(store, "pi")
    rest = await a_submitted_batch(store, jobs=sizes["rest"], qos=QoS.THROUGHPUT)
    unpaid = await a_submitted_batch(store, jobs=sizes["unpaid"], qos=QoS.AFAP, unpaid=True)
    late = await a_submitted_batch(store, jobs=sizes["late"], qos=QoS.SHORT_DEADLINE, deadline_at=AT)
    soon = later(AT, 1.0)
    dated = await a_submitted_batch(store, jobs=sizes["dated"], qos=QoS.SHORT_DEADLINE, deadline_at=soon)
    afap = await a_submitted_batch(store, jobs=sizes["afap"], qos=QoS.AFAP)

    ahead = [(await snapshot_of(store, one.batch_id)).queue.ahead for one in (afap, dated, late, rest, unpaid)]

    assert ahead == [2, 0, 9, 20, 25]


async def test_processors_count_by_their_availability(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await a_registered_host(store, last_rpc_at=AT, ncpus=4, on_fraction=0.5, active_fraction=0.5)
    await a_registered_host(store, last_rpc_at=AT, ncpus=2, on_fraction=1.0, active_fraction=1.0)

    assert (await snapshot_of(store, batch.batch_id)).active_processors == pytest.approx(3.0)
