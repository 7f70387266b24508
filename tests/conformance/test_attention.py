"""Tests that late, endangered and failing batches, and failing hosts, are found, on every store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.attention import BatchesInNeed, FailingHost
from domain.batches import Batch, QoS
from domain.dispatch import InstanceStep
from domain.forecasts import Method
from domain.jobs import InstanceState, JobState
from domain.restrictions import Restricted, Restriction
from domain.settlement import JobSettlement
from domain.units import AppVersionId, BatchId, Instant, later
from tests.builders import NOW
from tests.conformance.test_forecasts import a_record
from tests.conformance.test_host_lists import a_failure
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    the_version,
)

S = InstanceState


async def need(store: Store, *, limit: int = 9, **changes: Any) -> BatchesInNeed:
    values: dict[str, Any] = {"now": NOW, "failed": 2, "failed_fraction": 0.5, **changes}
    return await store.attention.batches(limit=limit, **values)


async def a_dated_batch(store: Store, deadline_s: float, q90_s: float | None, method: Method = Method.WARM) -> Batch:
    batch = await a_submitted_batch(store, jobs=2, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, deadline_s))
    if q90_s is not None:
        made = a_record(batch, q10_at=NOW, q50_at=NOW, q90_at=later(NOW, q90_s), method=method)
        assert await store.forecasts.publish(made)
    return batch


async def test_late_batches_and_those_at_risk_need_attention(store: Store) -> None:
    at_risk = await a_dated_batch(store, 100.0, 101.0)
    missed = await a_dated_batch(store, 0.0, None)
    aborted = await a_dated_batch(store, -5.0, None)
    await store.submissions.abort_batch(aborted.batch_id, now=NOW)
    await a_submitted_batch(store, jobs=1)
    for deadline_s, q90_s, method in (
        (100.0, 100.0, Method.WARM),
        (1.0, 9e9, Method.APRIORI),
        (1.0, None, Method.WARM),
    ):
        await a_dated_batch(store, deadline_s, q90_s, method)

    assert await need(store) == BatchesInNeed([missed.batch_id, at_risk.batch_id], 2)
    assert await need(store, limit=1) == BatchesInNeed([missed.batch_id], 2)
    later_need = await need(store, now=later(NOW, 1.0))
    assert (later_need.found, later_need.batch_ids[0]) == (4, missed.batch_id)


async def test_without_late_batches_none_needs_attention(store: Store) -> None:
    await a_submitted_batch(store, jobs=1)

    assert await need(store) == BatchesInNeed([], 0)


async def failing(
    store: Store, results: int, since: Instant = NOW, without: Sequence[AppVersionId] = ()
) -> list[tuple[int, int, int]]:
    hosts = await store.attention.hosts(since=since, results=results, failing_fraction=0.5, without=without, limit=9)
    return [(one.host_id, one.failures, one.results) for one in hosts]


async def validated(store: Store, host: RegisteredHost, batch_id: BatchId, *states: InstanceState) -> None:
    """Report results of the host, and have validation give them these states."""
    for state in states:
        sent = await a_sent_instance(store, batch_id, host)
        await report(store, host, a_report(sent))
        [facts] = [one for one in await store.unsettled.unsettled(99, now=NOW) if one.job_id == sent.job_id]
        step = InstanceStep(sent.instance_id, S.REPORTED, state)
        assert await store.unsettled.settle(
            [JobSettlement(sent.job_id, facts.serial, JobState.OPEN, NOW, steps=(step,))]
        )


async def test_hosts_that_fail_have_enough_results(store: Store) -> None:
    half, more, few, banned = [await a_registered_host(store, domain_name=name) for name in "abcd"]
    batch = await a_submitted_batch(store, jobs=40)
    for host, failures in ((half, 4), (more, 3), (few, 1), (banned, 4)):
        for _ in range(failures):
            await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)
    await validated(store, half, batch.batch_id, *[S.VALID] * 4)
    await validated(store, few, batch.batch_id, *[S.VALID] * 3)
    await store.restrictions.put(Restriction(Restricted.HOST, str(banned.host_id), 0, "bad", "ops", NOW))

    assert await failing(store, 3) == [(more.host_id, 3, 3), (half.host_id, 4, 8)]  # by rate
    assert await store.attention.hosts(since=NOW, results=4, failing_fraction=0.5, without=[], limit=9) == [
        FailingHost(half.host_id, 4, 8, "a", errors=4, last_at=later(NOW, 10.0), since=NOW)
    ]
    assert await failing(store, 3, later(NOW, 11.0)) == []


async def test_failing_hosts_have_their_failures_by_kind(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=9)
    for state, at in ((S.FAILED, 10.0), (S.FAILED, 20.0), (S.TIMED_OUT, 30.0)):
        await a_failure(store, host, batch.batch_id, state, at)
    await validated(store, host, batch.batch_id, S.INVALID, S.VALID)

    [found] = await store.attention.hosts(since=NOW, results=5, failing_fraction=0.5, without=[], limit=9)

    assert (found.failures, found.errors, found.invalid, found.timed_out) == (4, 2, 1, 1)
    assert found.last_at >= later(NOW, 30.0)


async def test_only_decided_results_count_for_failing_hosts(store: Store) -> None:
    """Results that wait for validation or came too late neither fail nor succeed; rejected ones fail."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=9)
    await validated(store, host, batch.batch_id, S.INVALID, S.INVALID, S.VALID, S.INCONCLUSIVE, S.TOO_LATE)
    for _ in range(2):
        await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host)))

    assert await failing(store, 3) == [(host.host_id, 2, 3)]
    assert await failing(store, 4) == []


async def test_hosts_are_not_judged_by_left_out_versions(store: Store) -> None:
    """A version that fails on many hosts is at fault, not these hosts."""
    of_version, of_both = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=20)
    bad = await the_version(store)
    for host in (of_version, of_both):
        for _ in range(4):
            await a_failure(store, host, batch.batch_id, S.FAILED, 10.0)
    await a_registered_version(store)
    await validated(store, of_version, batch.batch_id, *[S.VALID] * 3)
    for _ in range(3):
        await a_failure(store, of_both, batch.batch_id, S.FAILED, 10.0)

    assert await failing(store, 3) == [(of_both.host_id, 7, 7), (of_version.host_id, 4, 7)]
    assert await failing(store, 3, without=[bad.app_version_id]) == [(of_both.host_id, 7, 7)]
    assert await failing(store, 4, without=[bad.app_version_id]) == []
    [found] = await store.attention.hosts(
        since=NOW, results=3, failing_fraction=0.5, without=[bad.app_version_id], limit=9
    )
    assert (found.failures, found.of_versions, found.errors) == (7, 4, 7)
