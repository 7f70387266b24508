"""Effects of the batch order on requests: which batch is served first, and what limits block."""

from __future__ import annotations

import pytest

from domain.limits import Limit, Quantity, Scope
from domain.units import BatchId
from tests.acceptance.faces import json_of
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.acceptance.test_ordering_faces import order


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    """A project with an app, and two submitters in separate accounts."""
    await server.add_app()
    for who in ("ada", "bob"):
        await server.store.people.add_account(f"{who}s", parent=None, shares=1.0)
        await server.store.people.add_submitter(who, account=f"{who}s", shares=1.0, now=server.clock.now())
    return server


async def given(server: LiveServer, host: Host) -> BatchId | None:
    """Request one job; return its batch."""
    tasks = await host.ask()
    return BatchId(int(tasks[0].result.name.split("_")[1])) if tasks else None


async def test_who_was_served_goes_after_who_was_not(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": "multifactor", "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 5})
    bobs = await pi.submit(submitter="bob", jobs={"count": 5})
    assert await given(pi, await pi.add_host("one")) == adas

    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("two")) == bobs

    await order(pi)
    await pi.feed()
    assert await given(pi, await pi.add_host("three")) == adas


async def test_blocked_batch_is_sent_once_the_limit_allows(pi: LiveServer) -> None:
    adas = await pi.submit(submitter="ada", jobs={"count": 5})
    await pi.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=2.0))
    await order(pi)
    await pi.feed()
    hosts = [await pi.add_host(name) for name in ("one", "two", "three", "four")]

    assert [await given(pi, host) for host in hosts] == [adas, adas, None, None]
    await order(pi)
    held = (await pi.store.views.batch(adas)).hold
    assert held == "hard limit of submitter ada: 2 + 1 > 2 jobs in progress"

    [task] = hosts[0].held.values()
    await hosts[0].work(task)
    await pi.validate()
    await order(pi)
    await pi.feed()
    assert [await given(pi, await pi.add_host(name)) for name in ("five", "six")] == [adas, None]


@pytest.mark.parametrize("policy", ["equal_access", "logical_time", "multifactor"])
async def test_equals_share_forty_dispatches_between_and_after_orderings(pi: LiveServer, policy: str) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": policy, "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 100})
    await pi.submit(submitter="bob", jobs={"count": 100})
    for round_ in range(2):
        await order(pi)
        had = 0
        for number in range(40):
            if number % 15 == 0:
                await pi.feed()
            had += await given(pi, await pi.add_host(f"host{round_}-{number}")) == adas
        assert 16 <= had <= 24
        await pi.forward(60.0)


async def test_breakdowns_follow_numbers_within_ten_orderings(pi: LiveServer) -> None:
    await pi.create("PUT", "/settings/ordering.policy", json={"value": "equal_access", "why": "a test"})
    adas = await pi.submit(submitter="ada", jobs={"count": 30})
    await pi.submit(submitter="bob", jobs={"count": 30})
    hosts = [await pi.add_host(f"host{number}") for number in range(6)]
    for turn in range(3):
        await given(pi, hosts[2 * turn])
        await given(pi, hosts[2 * turn + 1])
        for _ in range(10):
            await pi.forward(60.0)
            await order(pi)
        shown = (await json_of(pi, "priority", "show"))["batches"]
        keys = {one["batch"]: (await pi.store.views.batch(BatchId(one["batch"]))).order_key for one in shown}
        assert {one["batch"]: -one["total"] for one in shown} == keys
        assert min(one["computed_at"] for one in shown) >= pi.clock.now() - 10 * 60.0 - 5.0
    assert adas in keys
