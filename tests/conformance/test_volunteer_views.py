"""Tests the volunteers' pages: own data only, latest first, and why a computer got no job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from domain.dispatch import RequestWrites
from domain.errors import NotFoundError
from domain.jobs import InstanceState
from domain.units import HostId, Instant, Seconds
from domain.volunteers import Outcome, OwnResult, OwnTotals, ResultPlace
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_report,
    a_submitted_batch,
    an_assignment,
    report,
    send,
    the_version,
    waiting_of,
)

WHY = (("memory", "job needs 9 bytes of RAM, host offers 8"), ("beta", "app pi is being tested"))


async def results_of(store: Store, host: RegisteredHost, **chosen: object) -> Sequence[OwnResult]:
    asked: dict[str, object] = {"outcome": None, "host_id": None, "after": None, "limit": 10, **chosen}
    return await store.volunteer_views.results(host.volunteer_id, **asked)  # type: ignore[arg-type]


async def two_volunteers(store: Store) -> tuple[RegisteredHost, RegisteredHost]:
    """Each has three jobs: one valid or failed, one waiting for validation, one in progress."""
    hosts = (await a_registered_host(store), await a_registered_host(store))
    batch_id = (await a_submitted_batch(store, jobs=6)).batch_id
    version = await the_version(store)
    waiting = await waiting_of(store, batch_id)
    for place, host in enumerate(hosts):
        assignments = [
            an_assignment(one, host, version, sent_at=Instant(NOW + number), due_at=Instant(NOW + 900.0 - number))
            for number, one in enumerate(waiting[3 * place : 3 * place + 3])
        ]
        await send(store, host, *assignments)
        failed = {"to_state": InstanceState.FAILED, "reason": "exit status 1", "hav_event": a_hav_event(assignments[0])}
        await report(store, host, a_report(assignments[0], **failed), a_report(assignments[1], elapsed_s=Seconds(40.0)))
    return hosts


async def test_volunteer_sees_own_results_latest_first(store: Store) -> None:
    mine, other = await two_volunteers(store)

    found = await results_of(store, mine)

    assert [(one.instance_id, one.outcome) for one in found] == [(2, Outcome.WAITING), (1, Outcome.FAILED)]
    assert {one.host_id for one in found} == {mine.host_id}
    assert (found[0].app, found[0].batch_id, found[0].sent_at, found[0].elapsed_s) == ("pi", 1, NOW + 1.0, 40.0)
    assert (found[1].state, found[1].reason) == (InstanceState.FAILED, "exit status 1")
    assert [one.instance_id for one in await results_of(store, other)] == [5, 4]


async def test_results_are_filtered_by_outcome_and_host_and_paged(store: Store) -> None:
    mine, other = await two_volunteers(store)

    assert [one.instance_id for one in await results_of(store, mine, outcome=Outcome.FAILED)] == [1]
    assert [one.instance_id for one in await results_of(store, mine, host_id=mine.host_id)] == [2, 1]
    assert list(await results_of(store, mine, host_id=other.host_id)) == []
    [first] = await results_of(store, mine, limit=1)
    place = ResultPlace(first.sent_at, first.instance_id)
    assert [one.instance_id for one in await results_of(store, mine, after=place)] == [1]


async def test_what_is_in_progress_is_the_volunteers_own_by_due_date(store: Store) -> None:
    mine, other = await two_volunteers(store)

    [held] = await store.volunteer_views.held(mine.volunteer_id, host_id=None, limit=10)

    assert (held.instance_id, held.host_id, held.app) == (3, mine.host_id, "pi")
    assert list(await store.volunteer_views.held(mine.volunteer_id, host_id=other.host_id, limit=10)) == []
    assert list(await store.volunteer_views.held(mine.volunteer_id, host_id=mine.host_id, limit=10)) == [held]


async def test_totals_count_what_all_own_computers_did(store: Store) -> None:
    mine, _ = await two_volunteers(store)
    stranger = await a_registered_host(store)

    assert await store.volunteer_views.totals(mine.volunteer_id) == OwnTotals(1, 1, 1, 0, 0)
    assert await store.volunteer_views.totals(stranger.volunteer_id) == OwnTotals(1, 0, 0, 0, 0)


async def test_computers_of_others_are_not_there(store: Store) -> None:
    mine, other = await two_volunteers(store)

    [own] = await store.volunteer_views.hosts(mine.volunteer_id, before=None, limit=10)

    assert (own.host.host_id, own.in_progress, own.refused) == (mine.host_id, 1, ())
    assert await store.volunteer_views.host(mine.volunteer_id, mine.host_id) == own
    assert list(await store.volunteer_views.hosts(mine.volunteer_id, before=mine.host_id, limit=10)) == []
    for host_id in (other.host_id, HostId(999)):
        with pytest.raises(NotFoundError, match="no computer"):
            await store.volunteer_views.host(mine.volunteer_id, host_id)


async def test_reason_for_no_job_is_kept_until_next_request(store: Store) -> None:
    host = await a_registered_host(store)
    record = (await store.ledger.read(host.key())).host
    assert record is not None

    async def call(at: float, why: tuple[tuple[str, str], ...]) -> tuple[Instant | None, object]:
        await store.ledger.write(RequestWrites(replace(record, last_rpc_at=Instant(NOW + at)), refused=why))
        own = await store.volunteer_views.host(host.volunteer_id, host.host_id)
        return own.refused_at, own.refused

    assert await call(1.0, WHY) == (NOW + 1.0, WHY)
    assert await call(2.0, ()) == (NOW + 1.0, WHY)
    assert await call(3.0, WHY[1:]) == (NOW + 3.0, WHY[1:])
    assert await call(2.5, WHY) == (NOW + 3.0, WHY[1:])  # older than the previous one
