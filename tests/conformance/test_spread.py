"""Tests how the instances of a job are spread over hosts and volunteers, by the app's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import OnePerVolunteer
from domain.dispatch import Assignment, AssignmentFate
from domain.jobs import InstanceState
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_registered_app,
    a_registered_host,
    a_report,
    a_submitted_batch,
    an_assignment,
    report,
    send,
    the_version,
    waiting_of,
)

SENT, SIBLING = AssignmentFate.SENT, AssignmentFate.SIBLING
QUORUM, ALWAYS, NEVER = OnePerVolunteer


async def two_hosts(store: Store) -> tuple[RegisteredHost, RegisteredHost]:
    """Two hosts of one volunteer."""
    first = await a_registered_host(store)
    return first, await a_registered_host(store, volunteer_id=first.volunteer_id)


async def set_app(store: Store, **changes: Any) -> None:
    await store.applications.set_app(replace(await a_registered_app(store), **changes))


async def for_hosts(store: Store, quorum: int, *hosts: RegisteredHost) -> list[Assignment]:
    """An instance of one job for each host."""
    batch = await a_submitted_batch(store, jobs=1, quorum=quorum, copies=len(hosts))
    version = await the_version(store)
    waiting = await waiting_of(store, batch.batch_id)
    return [an_assignment(one, host, version) for one, host in zip(waiting, hosts, strict=True)]


@pytest.mark.parametrize(
    ("quorum", "app", "fate"),
    [
        pytest.param(1, {}, SENT, id="quorum 1"),
        pytest.param(1, {"one_per_volunteer": ALWAYS}, SIBLING, id="quorum 1, always"),
        pytest.param(1, {"adaptive_copies": 2}, SIBLING, id="quorum 1, adaptive copies"),
        pytest.param(2, {}, SIBLING, id="quorum 2"),
        pytest.param(2, {"one_per_volunteer": NEVER}, SENT, id="quorum 2, never"),
    ],
)
async def test_second_host_of_a_volunteer(store: Store, quorum: int, app: dict[str, Any], fate: AssignmentFate) -> None:
    first, second = await two_hosts(store)
    await set_app(store, **app)
    sent, other = await for_hosts(store, quorum, first, second)
    await send(store, first, sent)

    outcome = await send(store, second, other)

    assert outcome.fates == {other.instance_id: fate}


@pytest.mark.parametrize(("per_host", "fate"), [(True, SIBLING), (False, SENT)])
async def test_host_gets_a_retry_of_its_own_job(store: Store, per_host: bool, fate: AssignmentFate) -> None:
    host = await a_registered_host(store)
    await set_app(store, one_per_host=per_host)
    sent, retry = await for_hosts(store, 1, host, host)
    await send(store, host, sent)
    await report(store, host, a_report(sent, to_state=InstanceState.FAILED))

    outcome = await send(store, host, retry)

    assert outcome.fates == {retry.instance_id: fate}


async def test_host_gets_no_second_instance_at_the_same_time(store: Store) -> None:
    """Also if the app allows several per host: a second copy of an instance in progress there is useless."""
    host = await a_registered_host(store)
    await set_app(store, one_per_host=False)
    one, two = await for_hosts(store, 1, host, host)

    outcome = await send(store, host, one, two)

    assert outcome.fates == {one.instance_id: SENT, two.instance_id: SIBLING}


async def test_limit_per_volunteer_includes_the_host(store: Store) -> None:
    host = await a_registered_host(store)
    await set_app(store, one_per_host=False)
    one, two = await for_hosts(store, 2, host, host)
    await send(store, host, one)
    await report(store, host, a_report(one, to_state=InstanceState.FAILED))

    outcome = await send(store, host, two)

    assert outcome.fates == {two.instance_id: SIBLING}


async def test_changed_limit_counts_what_was_sent_before(store: Store) -> None:
    """Two of a volunteer's hosts have the job when the limit is restored; a third host gets no instance."""
    first, second = await two_hosts(store)
    third = await a_registered_host(store, volunteer_id=first.volunteer_id)
    await set_app(store, one_per_volunteer=NEVER)
    one, two, three = await for_hosts(store, 2, first, second, third)
    before = [await send(store, host, sent) for host, sent in ((first, one), (second, two))]
    await set_app(store, one_per_volunteer=ALWAYS)

    outcome = await send(store, third, three)

    assert [fate for each in before for fate in each.fates.values()] == [SENT, SENT]
    assert outcome.fates == {three.instance_id: SIBLING}


async def test_copies_asked_for_limit_the_next_host(store: Store) -> None:
    """The dispatch that requests a second copy requires agreement, even if the app's settings change later."""
    first, second = await two_hosts(store)
    sent, other = await for_hosts(store, 1, first, second)
    await send(store, first, replace(sent, copies=2))

    outcome = await send(store, second, other)

    assert outcome.fates == {other.instance_id: SIBLING}
