"""Effects of the batch order on requests: which batch is served first, and what limits block."""

from __future__ import annotations

import pytest

from domain.limits import Limit, Quantity, Scope
from domain.units import BatchId
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.acceptance.test_ordering_faces import order
from tests.facts import missing


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
    assert not missing(held or "", "hard", "submitter ada:", "2 + 1 > 2 jobs")

    [task] = hosts[0].held.values()
    await hosts[0].work(task)
    await pi.validate()
    await order(pi)
    await pi.feed()
    assert [await given(pi, await pi.add_host(name)) for name in ("five", "six")] == [adas, None]
