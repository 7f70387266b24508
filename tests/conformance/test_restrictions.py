"""Bans, limits and pauses: what the catalogue and the feeder read, and the search for volunteers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.dispatch import RequestWrites
from domain.errors import NotFoundError
from domain.forecasting import PAUSE_S
from domain.jobs import InstanceState
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId, Instant, later
from tests.builders import NOW
from tests.conformance.to_settle import a_reported_job, failed, valid
from tests.stores import Store
from tests.worlds import (
    a_registered_app,
    a_registered_host,
    a_report,
    a_retry,
    a_sent_instance,
    a_submitted_batch,
    read,
)


def a_restriction(kind: Restricted, name: object, max_jobs: int = 0, at: Instant = NOW) -> Restriction:
    return Restriction(kind, str(name), max_jobs, "wrong results", "ada", at)


async def test_the_catalogue_has_restrictions_until_they_are_lifted(store: Store) -> None:
    first, second = a_restriction(Restricted.HOST, 7), a_restriction(Restricted.QUEUE, "bonus", at=later(NOW, 5.0))
    stricter = replace(first, max_jobs=3, why="slow")
    for one in (first, second, stricter):
        await store.restrictions.put(one)

    assert list(await store.restrictions.restrictions()) == [second, stricter]
    known = (await store.applications.load_catalogue()).restrictions
    assert dict(known) == {(Restricted.HOST, "7"): stricter, (Restricted.QUEUE, "bonus"): second}
    await store.restrictions.lift(Restricted.HOST, "7", now=NOW)
    assert list((await store.applications.load_catalogue()).restrictions) == [(Restricted.QUEUE, "bonus")]
    with pytest.raises(NotFoundError):
        await store.restrictions.lift(Restricted.HOST, "7", now=NOW)


@pytest.mark.parametrize("kind", [Restricted.APP, Restricted.QUEUE, Restricted.BATCH])
async def test_paused_work_is_not_ready(store: Store, kind: Restricted) -> None:
    other_app = await a_registered_app(store, "rho")
    paused = await a_submitted_batch(store, order_key=1.0, queue="bonus")
    other = await a_submitted_batch(store, order_key=2.0, app_id=other_app.app_id, queue="express")
    names = {Restricted.APP: paused.app_id, Restricted.QUEUE: "bonus", Restricted.BATCH: paused.batch_id}
    await store.restrictions.put(a_restriction(kind, names[kind]))

    assert list(await store.waiting.ready_batches(1)) == [other]
    await store.restrictions.lift(kind, str(names[kind]), now=NOW)
    assert list(await store.waiting.ready_batches(2)) == [paused, other]


@pytest.mark.parametrize("how", ["complete", "aborted"])
async def test_a_pause_ends_with_its_batch(store: Store, how: str) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host)
    other = await a_submitted_batch(store)
    for one in (facts.batch_id, other.batch_id):
        await store.restrictions.put(a_restriction(Restricted.BATCH, one))
    await store.restrictions.put(a_restriction(Restricted.HOST, facts.batch_id))
    assert len((await store.applications.load_catalogue()).restrictions) == 3

    if how == "complete":
        await store.unsettled.settle([valid(facts)])
    else:
        await store.submissions.abort_batch(facts.batch_id, now=NOW)

    left = {(Restricted.BATCH, str(other.batch_id)), (Restricted.HOST, str(facts.batch_id))}
    assert set((await store.applications.load_catalogue()).restrictions) == left
    with pytest.raises(NotFoundError):
        await store.restrictions.lift(Restricted.BATCH, str(facts.batch_id), now=NOW)
    await store.restrictions.put(a_restriction(Restricted.BATCH, facts.batch_id))  # by a request that saw it active
    assert {(one.kind, one.name) for one in await store.restrictions.restrictions()} == left
    assert set((await store.applications.load_catalogue()).restrictions) == left


async def moved_at(store: Store, batch_id: BatchId) -> Instant | None:
    standing = await store.forecasts.standing(batch_id)
    assert standing is not None
    return standing.age.moved_at


@pytest.mark.parametrize("kind", Restricted)
@pytest.mark.parametrize("paused_s", [PAUSE_S - 1.0, PAUSE_S])
async def test_batches_resumed_after_a_while_start_a_new_rate(store: Store, kind: Restricted, paused_s: float) -> None:
    """After a short pause, the hosts that were away come at once and do not show the rate."""
    other_app = await a_registered_app(store, "rho")
    batch = await a_submitted_batch(store, queue="bonus")
    other = await a_submitted_batch(store, app_id=other_app.app_id, queue="express")
    names = {Restricted.APP: batch.app_id, Restricted.QUEUE: "bonus"}
    name = str(names.get(kind, batch.batch_id))
    await store.restrictions.put(a_restriction(kind, name))

    await store.restrictions.lift(kind, name, now=later(NOW, paused_s))

    is_new = kind.is_work and paused_s >= PAUSE_S
    assert await moved_at(store, batch.batch_id) == (NOW + paused_s if is_new else None)
    assert await moved_at(store, other.batch_id) is None


@pytest.mark.parametrize("resumed", [False, None])
async def test_resumed_project_starts_new_rates(store: Store, resumed: bool | None) -> None:
    """The first pause is too short. The second lasts since its first change, not since the one with another reason. A
    batch that a pending change moves later than the second one ends keeps the later time. None is the default: not
    paused.
    """
    batch, pending = await a_submitted_batch(store), await a_submitted_batch(store)
    await store.ordering_rules.set_moved(pending.batch_id, later(NOW, 1260.0))
    seen = []
    for at_s, down in (
        (1.0, True),
        (600.0, resumed),
        (601.0, True),
        (602.0, True),
        (1201.0, resumed),
        (1203.0, resumed),
    ):
        await store.settings.set_setting("project.down", down, now=later(NOW, at_s), who="ops", why="disk full")
        seen.append(await moved_at(store, batch.batch_id))

    assert seen == [*[None] * 4, NOW + 1201.0, NOW + 1201.0]
    assert await moved_at(store, pending.batch_id) == NOW + 1260.0


@pytest.mark.parametrize("kind", [Restricted.APP, Restricted.QUEUE, Restricted.BATCH])
async def test_pause_with_a_new_reason_keeps_its_beginning(store: Store, kind: Restricted) -> None:
    batch = await a_submitted_batch(store, queue="bonus")
    name = {Restricted.APP: batch.app_id, Restricted.QUEUE: "bonus", Restricted.BATCH: batch.batch_id}[kind]
    first = await store.restrictions.put(a_restriction(kind, name))
    second = await store.restrictions.put(replace(first, why="slow", set_by="bob", set_at=later(NOW, PAUSE_S - 1.0)))

    await store.restrictions.lift(kind, str(name), now=later(NOW, PAUSE_S))

    assert second == replace(first, why="slow", set_by="bob")
    assert await moved_at(store, batch.batch_id) == NOW + PAUSE_S


async def test_another_limit_begins_when_it_is_set(store: Store) -> None:
    limit = await store.restrictions.put(a_restriction(Restricted.HOST, 7, 3))
    ban = await store.restrictions.put(a_restriction(Restricted.HOST, 7, at=later(NOW, 60.0)))

    assert (limit.set_at, ban.set_at) == (NOW, NOW + 60.0)
    assert list(await store.restrictions.restrictions()) == [ban]


@pytest.mark.parametrize("longer", [Restricted.BATCH, None])
async def test_rate_that_began_in_a_pause_starts_with_its_end(store: Store, longer: Restricted | None) -> None:
    """A long pause ends during a short one, of the app or, None, of the project. Another batch's rate began before."""
    other_app = await a_registered_app(store, "rho")
    batch, other = await a_submitted_batch(store), await a_submitted_batch(store, app_id=other_app.app_id)
    await store.ordering_rules.set_moved(other.batch_id, later(NOW, 799.0))
    app = a_restriction(Restricted.APP, batch.app_id, at=later(NOW, 800.0 if longer else 0.0))

    async def set_down(down: bool, at_s: float) -> None:
        await store.settings.set_setting("project.down", down, now=later(NOW, at_s), who="ops", why="disk full")

    if longer:
        await store.restrictions.put(a_restriction(longer, batch.batch_id))
        await store.restrictions.put(app)
        await store.restrictions.lift(longer, str(batch.batch_id), now=later(NOW, 860.0))
        first = await moved_at(store, batch.batch_id)
        await store.restrictions.lift(app.kind, app.name, now=later(NOW, 920.0))
    else:
        await store.restrictions.put(app)
        await set_down(True, 800.0)
        await store.restrictions.lift(app.kind, app.name, now=later(NOW, 860.0))
        first = await moved_at(store, batch.batch_id)
        await set_down(False, 920.0)

    assert (first, await moved_at(store, batch.batch_id)) == (NOW + 860.0, NOW + 920.0)
    assert await moved_at(store, other.batch_id) == NOW + 799.0


async def test_lifted_pause_keeps_a_later_move(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.restrictions.put(a_restriction(Restricted.BATCH, batch.batch_id))
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 960.0))

    await store.restrictions.lift(Restricted.BATCH, str(batch.batch_id), now=later(NOW, 900.0))

    assert await moved_at(store, batch.batch_id) == NOW + 960.0


async def test_lifted_pause_does_not_move_ended_batches(store: Store) -> None:
    facts = await a_reported_job(store, await a_registered_host(store), to_state=InstanceState.FAILED)
    app_id = (await store.views.batch(facts.batch_id)).app_id
    await store.restrictions.put(a_restriction(Restricted.APP, app_id))
    await store.unsettled.settle([failed(facts)])

    await store.restrictions.lift(Restricted.APP, str(app_id), now=later(NOW, 900.0))

    assert await store.repeating.retry_failed(facts.batch_id, now=later(NOW, 901.0)) == 1
    assert await moved_at(store, facts.batch_id) is None


@pytest.mark.parametrize("kind", [Restricted.HOST, Restricted.VOLUNTEER])
async def test_an_aborting_ban_ends_only_its_own_jobs(store: Store, kind: Restricted) -> None:
    banned, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=4)
    ended = [await a_sent_instance(store, batch.batch_id, banned) for _ in range(2)]
    kept = await a_sent_instance(store, batch.batch_id, other)
    key = str(banned.host_id if kind is Restricted.HOST else banned.volunteer_id)
    await store.restrictions.put(replace(a_restriction(kind, key), abort=True))

    assert [await store.restrictions.abort_jobs(kind, key) for _ in range(2)] == [2, 0]

    assert [one.instance_id for one in (await read(store, other)).held] == [kept.instance_id]
    assert (await read(store, banned)).held == ()
    assert (await store.views.batch(batch.batch_id)).counts.in_progress == 1
    unsettled = await store.unsettled.unsettled(10, now=NOW)
    assert {one.job_id for one in unsettled} == {one.job_id for one in ended}
    host_rows = (await read(store, banned)).havs.values()
    assert [(one.n_error, one.n_timeout) for one in host_rows] == [(0, 0)] * len(host_rows)
    late = await store.ledger.write(RequestWrites(banned.host, (a_report(ended[0], from_state=InstanceState.ABORTED),)))
    assert late.left_out == frozenset()  # a result is still accepted
    assert (await store.applications.load_catalogue()).restrictions[kind, key].abort


async def test_stopped_batches_have_jobs_never_sent(store: Store) -> None:
    """Paused and blocked ones count, too, those with only a retry unsent do not."""
    other_app = await a_registered_app(store, "rho")
    first = await a_submitted_batch(store, name="oak", order_key=1.0, queue="bonus")
    await a_submitted_batch(store, name="elm", order_key=2.0, hold="over a limit")
    await a_submitted_batch(store, name="ash", order_key=3.0, app_id=other_app.app_id)
    for send in (a_sent_instance, a_retry):
        sent = await a_submitted_batch(store, jobs=1)
        await send(store, batch_id=sent.batch_id, host=await a_registered_host(store))
    ended = await a_submitted_batch(store)
    await store.submissions.abort_batch(ended.batch_id, now=NOW)
    named = {Restricted.APP: first.app_id, Restricted.QUEUE: "bonus", Restricted.BATCH: first.batch_id}
    for kind, name in named.items():
        await store.restrictions.put(a_restriction(kind, name))

    found = {kind: await store.restrictions.batches_stopped(kind, str(name)) for kind, name in named.items()}

    assert found == {Restricted.APP: 2, Restricted.QUEUE: 1, Restricted.BATCH: 1}
    assert await store.restrictions.batches_stopped(Restricted.APP, str(other_app.app_id)) == 1
    assert await store.restrictions.batches_stopped(Restricted.APP, "4711") == 0


async def test_bans_do_not_pause_work(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.restrictions.put(a_restriction(Restricted.HOST, batch.batch_id))
    await store.restrictions.put(a_restriction(Restricted.VOLUNTEER, batch.app_id))

    assert list(await store.waiting.ready_batches(2)) == [batch]


async def test_volunteers_are_found_by_what_operators_know(store: Store) -> None:
    first = (await a_registered_host(store, domain_name="Lab-PC_7")).volunteer_id
    second = (await a_registered_host(store, domain_name="lab-pc17")).volunteer_id
    searches = {"": [second, first], "PC_7": [first], "lab-": [second, first], "volunteer2@": [second], "none": []}

    for text, expected in searches.items():
        found = await store.restrictions.volunteers(text, before=None, limit=10)
        assert [one.volunteer_id for one in found] == expected, text
    [older] = await store.restrictions.volunteers("lab", before=second, limit=10)
    assert (older.volunteer_id, older.email, older.hosts) == (first, "volunteer1@example.org", 1)
    assert len(await store.restrictions.volunteers("lab", before=None, limit=1)) == 1
