"""Tests operators' queries about hosts and waiting work: every store returns the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import NVIDIA, PlanClass
from domain.dispatch import RequestWrites
from domain.errors import NotFoundError
from domain.havs import HavEvent, HavEventKind
from domain.history import START
from domain.hosts import Coprocessor
from domain.insight import STANDING_FIELDS, Caller, HostSample, JobSize, Newcomers, RecentInstance
from domain.jobs import InstanceState
from domain.units import BatchId, Flop, FlopPerSecond, HostId, InstanceId, Instant, Seconds, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_registered_version,
    a_report,
    a_retry,
    a_sent_instance,
    a_submitted_batch,
    report,
)

CUDA = PlanClass("cuda", gpu_type=NVIDIA)
LONG_AGO = Instant(0.0)


async def calls(store: Store, host: RegisteredHost, *after_s: float) -> RegisteredHost:
    """Let the host make a request a number of seconds after its creation."""
    for seconds in after_s:
        said = replace(host.host, last_rpc_at=later(NOW, seconds))
        await store.ledger.write(RequestWrites(said, known=host.host))
    return host


async def a_caller(store: Store, *after_s: float, **changes: Any) -> RegisteredHost:
    return await calls(store, await a_registered_host(store, last_rpc_at=NOW, **changes), *after_s)


async def a_result(store: Store, host: RegisteredHost, batch_id: BatchId, ratio: float = 0.5) -> None:
    sent = await a_sent_instance(store, batch_id, host)
    await report(store, host, a_report(sent, hav_event=a_hav_event(sent, at=NOW, ln_turnaround_ratio=ratio)))


async def test_the_time_between_calls_is_a_decayed_mean(store: Store) -> None:
    host = await a_caller(store, 1000.0, 3000.0)

    caller = await store.insight.caller(host.host_id)

    assert caller == Caller(host.host_id, host.key(), later(NOW, 3000.0), Seconds(1100.0))
    assert caller.calls_per_hour(later(NOW, 3000.0)) == pytest.approx(3600.0 / 1100.0)
    with pytest.raises(NotFoundError, match="no host 4711"):
        await store.insight.caller(HostId(4711))


async def test_a_caller_is_read_as_its_next_request_would_be(store: Store) -> None:
    host = await a_caller(store)

    view = await store.ledger.read((await store.insight.caller(host.host_id)).key)

    assert view.host == host.host and view.volunteer is not None


async def test_the_hosts_that_called_last_come_first(store: Store) -> None:
    hosts = [await a_caller(store, seconds) for seconds in (30.0, 10.0, 20.0, 20.0)]

    latest = [caller.host_id for caller in await store.insight.recent_callers(3)]

    assert latest == [hosts[0].host_id, hosts[3].host_id, hosts[2].host_id]
    assert (await store.insight.recent_callers(1))[0] == await store.insight.caller(hosts[0].host_id)


async def test_active_callers_are_counted_beyond_the_limit(store: Store) -> None:
    hosts = [await a_caller(store, seconds) for seconds in (30.0, 10.0, 20.0, -99.0)]

    some, active = await store.insight.active_callers(2, active_since=NOW)
    every, _ = await store.insight.active_callers(9, active_since=NOW)

    assert (len(some), active) == (2, 3)
    assert {one.host_id for one in every} == {one.host.host_id for one in hosts[:3]} and [*every[:2]] == [*some]
    assert await store.insight.active_callers(2, active_since=later(NOW, 99.0)) == ([], 0)


async def test_a_standing_has_everything_a_percentile_is_made_of(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store)
    host = await a_caller(store, 1800.0)
    await a_result(store, host, batch.batch_id)
    await calls(store, host, 3600.0)

    now = later(NOW, 3600.0)
    [(table, _)] = await store.insight.standings([[version]], active_since=NOW, now=now)
    [row] = table.tolist()

    interval_s = (await store.insight.caller(host.host_id)).rpc_interval_s
    assert interval_s is not None
    assert dict(zip([name for name, _ in STANDING_FIELDS], row, strict=True)) == pytest.approx(
        {
            "host_id": host.host_id,
            "volunteer_id": host.host.volunteer_id,
            "app_version_id": version.app_version_id,
            "consecutive_valid": 1,
            "failed": False,
            "stats_at": NOW,
            "relaxed_n": 1.0,
            "relaxed_sum": 0.5,
            "tight_n": 0.0,
            "tight_missed_n": 0.0,
            "clean_since_at": NOW,
            "calls_per_hour": 3600.0 / interval_s,
        }
    )


async def test_last_failure_is_shown_and_single_call_has_no_rate(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store)
    host = await a_registered_host(store, last_rpc_at=NOW)
    sent = await a_sent_instance(store, batch.batch_id, host)
    event = HavEvent(host.host_id, sent.app_version_id, HavEventKind.ERROR, NOW)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED, hav_event=event))

    [([row], _)] = await store.insight.standings([[version]], active_since=LONG_AGO, now=NOW)

    assert bool(row["failed"]) is True
    assert float(row["calls_per_hour"]) == 0.0


async def test_silent_hosts_and_other_versions_have_no_standing(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store, last_rpc_at=NOW))
    await store.applications.put_plan_class(CUDA)
    other = await a_registered_version(store, plan_class=CUDA, version_num=900)

    found = await store.insight.standings([[version], [other]], active_since=NOW, now=NOW)
    assert [table["app_version_id"].tolist() for table, _ in found] == [[version.app_version_id], []]
    [(table, _)] = await store.insight.standings([[version]], active_since=later(NOW, 1.0), now=NOW)
    assert table.size == 0


async def test_long_silent_host_calls_per_third_of_its_silence(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store)
    host = await a_caller(store, 600.0)
    await a_sent_instance(store, batch.batch_id, host)
    last = (await store.insight.caller(host.host_id)).last_rpc_at

    [([row], _)] = await store.insight.standings([[version]], active_since=LONG_AGO, now=later(last, 10_800.0))

    assert float(row["calls_per_hour"]) == pytest.approx(1.0)


async def test_newcomers_can_run_a_version_and_have_no_record(store: Store) -> None:
    version = await a_registered_version(store)
    batch = await a_submitted_batch(store)
    await a_sent_instance(store, batch.batch_id, await a_caller(store, 600.0))
    await a_caller(store, 600.0)
    await a_caller(store, 600.0, platforms=("windows_x86_64",))
    await a_registered_host(store, last_rpc_at=NOW)
    now = later(NOW, 600.0)

    [(_, found)] = await store.insight.standings([[version]], active_since=NOW, now=now)

    assert found.hosts == 2 and found.calls_per_hour == pytest.approx(6.0)
    [(_, lately)] = await store.insight.standings([[version]], active_since=later(NOW, 700.0), now=now)
    assert lately == Newcomers()


async def test_a_gpu_version_has_newcomers_with_such_a_gpu_only(store: Store) -> None:
    await store.applications.put_plan_class(CUDA)
    version = await a_registered_version(store, plan_class=CUDA)
    await a_caller(store, 600.0)
    await a_caller(store, 600.0, coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e12)),))

    plain = await a_registered_version(store, version_num=900)

    (_, on_gpus), (_, on_cpus) = await store.insight.standings(
        [[version], [plain]], active_since=NOW, now=later(NOW, 600.0)
    )

    assert (on_gpus.hosts, on_cpus.hosts) == (1, 2)


async def test_batches_wait_in_order_with_their_retries_counted(store: Store) -> None:
    host = await a_registered_host(store)
    later_one = await a_submitted_batch(store, jobs=3, order_key=2.0)
    first = await a_submitted_batch(store, jobs=2, order_key=1.0)
    await a_retry(store, host, later_one.batch_id)

    waiting = await store.insight.waiting_batches(9)

    assert [one.batch.batch_id for one in waiting] == [first.batch_id, later_one.batch_id]
    assert [one.retries_unsent for one in waiting] == [0, 1]
    assert [one.batch.counts.unsent for one in waiting] == [2, 3]
    assert [one.most_taken for one in waiting] == [0, 1]
    assert {one.delay_bound_s for one in waiting} == {7 * 86400.0}
    assert [one.batch for one in waiting] == list(await store.waiting.ready_batches(9))
    assert len(await store.insight.waiting_batches(1)) == 1


async def test_job_of_an_instance_is_found_by_its_id(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, turnaround_sample=0.25))

    job = await store.views.job_of_instance(sent.instance_id)
    assert job == await store.views.job(sent.job_id)
    [row] = job.instances
    assert (row.instance_id, row.host_id, row.app_version_id) == (sent.instance_id, host.host_id, sent.app_version_id)
    assert (row.timeout_at, row.turnaround_sample, row.copied_because) == (sent.timeout_at, 0.25, None)
    with pytest.raises(NotFoundError, match="no instance 4711"):
        await store.views.job_of_instance(InstanceId(4711))


async def test_job_of_an_instance_of_the_history_is_found_too(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    moved = await store.history.move_ended(before=later(NOW, 1e9), after=START, limit=9)
    assert moved.jobs == 1

    assert (await store.views.job_of_instance(InstanceId(1))).batch_id == batch.batch_id


async def test_a_sample_of_hosts_has_all_that_is_known_of_them(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store)
    host = await a_caller(store, 1800.0, ncpus=4)
    await a_result(store, host, batch.batch_id)
    await calls(store, host, 3600.0)
    stored, havs = await store.views.host(host.host_id)

    sample = await store.insight.sampled_hosts(10, active_since=NOW)

    [found] = sample.hosts
    assert (found.host, list(found.havs), sample.active) == (stored, list(havs), 1)
    assert found.rpc_interval_s == (await store.insight.caller(host.host_id)).rpc_interval_s
    assert found.havs[0].n_valid == 1


async def test_instances_in_progress_of_a_sample_are_bounded(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=5)
    hosts = [await a_caller(store, float(number)) for number in range(2)]
    sent = [await a_sent_instance(store, batch.batch_id, hosts[place]) for place in (0, 1, 0, 1, 0)]

    every = await store.insight.sampled_hosts(10, active_since=NOW, most_held=9)
    some = await store.insight.sampled_hosts(10, active_since=NOW, most_held=4)
    none = await store.insight.sampled_hosts(10, active_since=NOW)

    assert [[len(one.held) for one in sample.hosts] for sample in (every, some, none)] == [[3, 2], [3, 1], [0, 0]]
    assert every.hosts[1].held[0] == RecentInstance(
        batch.batch_id, sent[1].app_version_id, sent[1].sent_at, sent[1].due_at
    )


async def test_a_sample_is_drawn_by_ids_and_knows_of_how_many(store: Store) -> None:
    hosts = [await a_caller(store, float(number)) for number in range(9)]
    silent = await a_registered_host(store, last_rpc_at=LONG_AGO)

    all_hosts = await store.insight.sampled_hosts(100, active_since=NOW)
    some = await store.insight.sampled_hosts(4, active_since=NOW)

    assert [one.host.host_id for one in all_hosts.hosts] == [host.host_id for host in hosts]
    assert silent.host_id not in [one.host.host_id for one in all_hosts.hosts]
    assert (all_hosts.active, some.active) == (9, 9)
    assert [one.host.host_id for one in some.hosts] == [4, 6, 7, 9]  # the first four by the MD5 of their ids
    assert await store.insight.sampled_hosts(4, active_since=later(NOW, 1e6)) == HostSample()


async def test_job_sizes_are_means_and_the_most_that_is_asked_for(store: Store) -> None:
    one = await a_submitted_batch(store, jobs=10, quorum=2, batch_flop=7.2e13)
    two = await a_submitted_batch(store, jobs=5, batch_flop=1e13)

    assert await store.insight.job_sizes([two.batch_id, one.batch_id, BatchId(4711)]) == {
        one.batch_id: JobSize(Flop(3.6e12), 1e8, 1.0, 2),
        two.batch_id: JobSize(Flop(2e12), 1e8, 1.0, 1),
    }
