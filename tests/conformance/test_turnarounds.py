"""Tests the usual turnaround of a batch's jobs, and ranking by it: an accurate slow host is slow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from domain.apps import AppVersion
from domain.dispatch import Assignment
from domain.jobs import InstanceState
from domain.units import BatchId, Flop, Instant, JobId, Seconds, later
from hoststats.ports import HostStatisticsPorts
from hoststats.service import HostStatistics
from jobs.sweeper import time_out_step
from lifecycle.settle import needs_comparison, settle
from tests.builders import NOW, a_job_class
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import (
    DAY_S,
    RegisteredHost,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
)

S = InstanceState
HOUR_S = 3600.0


async def the_result(
    store: Store, batch_id: BatchId, version: AppVersion, hours: float, *, runtime_hours: float, host: RegisteredHost
) -> None:
    """Report a valid result after a number of hours; the host's own estimate was `runtime_hours`."""
    sent = await a_sent_instance(
        store,
        batch_id,
        host,
        app_version_id=version.app_version_id,
        est_runtime_s=Seconds(runtime_hours * HOUR_S),
        due_at=later(NOW, 30 * DAY_S),
        timeout_at=later(NOW, 31 * DAY_S),
    )
    back_at = later(sent.sent_at, hours * HOUR_S)
    await report(store, host, a_report(sent, to_state=S.REPORTED, reported_at=back_at))
    await settled(store, sent, back_at)


async def settled(store: Store, sent: Assignment, at: Instant) -> None:
    """Settle like the validator: the event has the host's new sample."""
    [facts] = [one for one in await store.unsettled.unsettled(1000, now=NOW) if one.job_id == sent.job_id]
    settlement = settle(facts, dict.fromkeys(needs_comparison(facts), 0), now=at, max_lost=20)
    assert settlement.canonical_instance_id == sent.instance_id
    assert await store.unsettled.settle([settlement]) == 1


async def results(store: Store, batch_id: BatchId, version: AppVersion, hours: Sequence[float]) -> None:
    for one in hours:
        host = await a_registered_host(store, last_rpc_at=NOW)
        await the_result(store, batch_id, version, one, runtime_hours=one, host=host)


async def median_of(store: Store, batch_id: BatchId) -> float | None:
    return (await store.views.batch(batch_id)).median_turnaround_s


async def test_a_batch_has_a_median_from_twenty_results_on(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=30)

    await results(store, batch.batch_id, version, [float(one) for one in range(1, 20)])
    await store.hav_tables.refresh_turnarounds(version.app_id)
    assert await median_of(store, batch.batch_id) is None

    await results(store, batch.batch_id, version, [20.0])
    await store.hav_tables.refresh_turnarounds(version.app_id)
    assert await median_of(store, batch.batch_id) == 10 * HOUR_S


@pytest.mark.parametrize(("later_hours", "median_hours"), [(10.4, 10.0), (10.6, 10.6)])
async def test_a_median_that_moves_by_less_than_a_twentieth_stays(
    store: Store, later_hours: float, median_hours: float
) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=60)
    await results(store, batch.batch_id, version, [10.0] * 20)
    await store.hav_tables.refresh_turnarounds(version.app_id)

    await results(store, batch.batch_id, version, [later_hours] * 21)
    await store.hav_tables.refresh_turnarounds(version.app_id)

    assert await median_of(store, batch.batch_id) == pytest.approx(median_hours * HOUR_S)


async def test_what_is_still_out_counts_as_longer_than_what_is_back(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=60)
    await results(store, batch.batch_id, version, [1.0] * 15 + [3.0] * 5)
    for _ in range(10):
        await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    await store.hav_tables.refresh_turnarounds(version.app_id)
    assert await median_of(store, batch.batch_id) == HOUR_S

    for _ in range(8):
        await a_sent_instance(store, batch.batch_id, await a_registered_host(store))
    await store.hav_tables.refresh_turnarounds(version.app_id)
    assert await median_of(store, batch.batch_id) == 3 * HOUR_S


async def test_batch_expects_app_median_until_half_returned(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=60)
    await results(store, batch.batch_id, version, [2.0] * 20)
    out = [await a_sent_instance(store, batch.batch_id, await a_registered_host(store)) for _ in range(21)]
    large = await a_submitted_batch(store, jobs=1, job_class=a_job_class(fpops_est_flop=Flop(7.2e12)))
    of_large = await a_sent_instance(store, large.batch_id, await a_registered_host(store))

    await store.hav_tables.refresh_turnarounds(version.app_id)

    assert await median_of(store, batch.batch_id) is None
    overdue = {
        one.held.instance_id: one.held for one in await store.overdue.overdue(now=later(NOW, 99 * DAY_S), limit=99)
    }
    assert overdue[out[0].instance_id].median_turnaround_s == pytest.approx(2 * HOUR_S)
    assert overdue[of_large.instance_id].median_turnaround_s == pytest.approx(4 * HOUR_S)
    [waited_for] = await store.tails.tail_jobs(large.batch_id, after=JobId(0), limit=9, now=NOW)
    assert waited_for.median_turnaround_s == pytest.approx(4 * HOUR_S)


async def test_an_app_nothing_has_come_back_of_expects_nothing(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    await store.hav_tables.refresh_turnarounds(version.app_id)

    [overdue] = await store.overdue.overdue(now=later(NOW, 99 * DAY_S), limit=9)
    assert overdue.held.instance_id == sent.instance_id
    assert overdue.held.median_turnaround_s is None


async def test_every_way_an_instance_ends_is_measured_by_its_batch(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=40)
    await results(store, batch.batch_id, version, [2.0] * 20)
    await store.hav_tables.refresh_turnarounds(version.app_id)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)

    held = (await read(store, host)).held
    reported = (await read(store, host, sent.instance_id)).reported[sent.instance_id]
    [overdue] = [
        one for one in await store.overdue.overdue(now=later(NOW, 99 * DAY_S), limit=99)
        if one.held.instance_id == sent.instance_id
    ]  # fmt: skip
    await report(store, host, a_report(sent, to_state=S.REPORTED, reported_at=later(NOW, 60.0)))
    [facts] = [one for one in await store.unsettled.unsettled(99, now=NOW) if one.job_id == sent.job_id]

    assert [one.median_turnaround_s for one in held] == [2 * HOUR_S]
    assert reported.held.median_turnaround_s == overdue.held.median_turnaround_s == 2 * HOUR_S
    assert facts.instances[0].median_turnaround_s == 2 * HOUR_S
    waited_for = await store.tails.tail_jobs(batch.batch_id, after=JobId(0), limit=99, now=NOW)
    assert {one.median_turnaround_s for one in waited_for} == {2 * HOUR_S}
    event = time_out_step(overdue, later(sent.sent_at, 400 * DAY_S)).hav_event
    assert event is not None and event.ln_turnaround_ratio == pytest.approx(math.log(400 * 12))


async def test_accurate_slow_host_ranks_below_fast_one(store: Store) -> None:
    """docs/decisions/0011: both take exactly their estimates, one 2 hours, the other 20."""
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=100)
    hours = [2.0, *[5.0 + one / 10 for one in range(20)], 20.0]
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in hours]
    ports = HostStatisticsPorts(store.applications, store.hav_tables, store.generations)
    service = HostStatistics(ports, HandClock(later(NOW, DAY_S)))
    await results(store, batch.batch_id, version, [6.0] * 20)
    await service.run()
    for _ in range(3):
        for host, taken in zip(hosts, hours, strict=True):
            await the_result(store, batch.batch_id, version, taken, runtime_hours=taken, host=host)

    await store.settings.set_setting("ranking.min_samples", 2.0, now=NOW, who="test", why="")
    await service.run()

    rows = [(await read(store, host)).havs[version.app_version_id] for host in (hosts[0], hosts[-1])]
    assert [row.relaxed.mean for row in rows] == pytest.approx([math.log(2 / 6), math.log(20 / 6)])
    [[fast], [slow]] = [await store.generations.percentiles_of(host.host_id) for host in (hosts[0], hosts[-1])]
    assert fast.x is not None and fast.x > 0.95
    assert slow.x is not None and slow.x < 0.05
