"""Tests batches that no active host can finish, because of limits per volunteer or host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import OnePerVolunteer
from domain.batches import Batch
from domain.insight import Short
from domain.units import Instant, later
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_app, a_registered_host, a_retry, a_sent_instance, a_submitted_batch, the_version

SINCE = Instant(NOW - 7 * 86400.0)


async def short(store: Store, batch: Batch) -> Short | None:
    return (await store.insight.short([batch.batch_id], active_since=SINCE)).get(batch.batch_id)


async def set_app(store: Store, **changes: Any) -> None:
    await store.applications.set_app(replace(await a_registered_app(store), **changes))


@pytest.mark.parametrize(
    ("app", "found"),
    [
        ({}, Short("host", 1, 1, hosts=1, volunteers=1)),
        ({"one_per_volunteer": OnePerVolunteer.ALWAYS}, Short("volunteer", 1, 1, hosts=1, volunteers=1)),
        ({"one_per_host": False}, None),
    ],
)
async def test_retry_of_the_only_host_is_short(store: Store, app: dict[str, Any], found: Short | None) -> None:
    await the_version(store)
    await set_app(store, **app)
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    before = await short(store, batch)
    await a_retry(store, host, batch.batch_id)

    assert before is None
    assert await short(store, batch) == found


async def test_second_host_of_the_volunteer_ends_it(store: Store) -> None:
    await the_version(store)
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    await a_retry(store, host, batch.batch_id)
    await a_registered_host(store, volunteer_id=host.volunteer_id)

    by_host = await short(store, batch)
    await set_app(store, one_per_volunteer=OnePerVolunteer.ALWAYS)

    assert by_host is None
    assert await short(store, batch) == Short("volunteer", 1, 1, hosts=2, volunteers=1)


@pytest.mark.parametrize("other", ["another platform", "silent"])
async def test_hosts_that_cannot_help_do_not_count(store: Store, other: str) -> None:
    await the_version(store)
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    await a_retry(store, host, batch.batch_id)
    if other == "silent":
        await a_registered_host(store, last_rpc_at=Instant(SINCE - 1.0))
    else:
        await a_registered_host(store, platforms=("sparc-sun-solaris",))

    assert await short(store, batch) == Short("host", 1, 1, hosts=1, volunteers=1)


async def test_quorum_above_the_volunteers_is_short_at_once(store: Store) -> None:
    await the_version(store)
    host = await a_registered_host(store)
    await a_registered_host(store, volunteer_id=host.volunteer_id)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)

    alone = await short(store, batch)
    await a_registered_host(store)

    assert alone == Short("volunteer", 2, 0, hosts=2, volunteers=1)
    assert await short(store, batch) is None


async def test_batches_over_and_without_hosts_are_not_short(store: Store) -> None:
    await the_version(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    without_hosts = await short(store, batch)
    host = await a_registered_host(store)
    await a_sent_instance(store, batch.batch_id, host)
    await store.submissions.abort_batch(batch.batch_id, now=later(NOW, 60.0))

    assert (without_hosts, await short(store, batch)) == (None, None)
