"""Tests the order of batches: read in one view, charged once, and moved to the given places."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.batches import FIRST_PLACE, BatchState, QoS, place_of
from domain.errors import NotFoundError
from domain.insight import WorkAhead
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import (
    Grant,
    LeafStanding,
    LeafUsage,
    LogicalCorrection,
    Member,
    OrderingCharges,
    OrderNotes,
    Permission,
    Reference,
    StoredPlace,
    WindowUsage,
)
from domain.ordering import PlaceInOrder, QueueClock, Request, ServiceLevel
from domain.restrictions import Restricted, Restriction
from domain.settlement import JobSettlement
from domain.units import AccountId, AppId, BatchId, Instant, Seconds, SubmitterId, later
from domain.usage import Amounts, DecayedUsage
from priority.policies import LEVEL_TIERS
from tests.builders import NOW, a_job_class
from tests.conformance.to_settle import a_reported_job, valid
from tests.stores import Store, as_postgres
from tests.worlds import (
    a_registered_host,
    a_registered_version,
    a_report,
    a_retry,
    a_sent_instance,
    a_submitted_batch,
    report,
)

MINE = (SubmitterId(1), AccountId(1))
NOTES = OrderNotes(QueueClock(Seconds(60.0), NOW), 2, 5, 4, 3, Instant(NOW - 9.0), 0.5, 20)


def charges(**changes: object) -> OrderingCharges:
    return replace(OrderingCharges(0, NOW, Reference(NOW)), **changes)  # type: ignore[arg-type]  # any field


async def test_a_new_batch_is_seen_with_what_its_jobs_ask_for(store: Store) -> None:
    job_class = a_job_class(ncpus=2.0, memory_bytes=1e9, disk_bytes=2e9, fpops_est_flop=5e12, max_errors=3)
    batch = await a_submitted_batch(store, jobs=4, job_class=job_class)

    view = await store.ordering.view()

    [one] = view.batches
    assert one.batch == batch
    assert (one.request, one.job_flop, one.max_errors) == (Request(2.0, 1e9, 2e9), 5e12, 3)
    assert one.notes == OrderNotes(QueueClock(Seconds(0.0), NOW))
    assert not one.explained
    assert [account.name for account in view.accounts] == ["default"]
    assert view.members == [Member(SubmitterId(1), "default", AccountId(1))]
    assert (view.serial, view.reference) == (0, None)


async def test_what_is_charged_is_seen_by_the_next_look(store: Store) -> None:
    batch = await a_submitted_batch(store)
    usage = LeafUsage(MINE, DecayedUsage(Amounts(1.0, 2.0, 3.0, 4.0), NOW), (0.5, 2.0))
    window = WindowUsage(MINE, ServiceLevel.EXPEDITE, Instant(0.0), Seconds(100.0), 7.0)
    reference = Reference(NOW, Request(4.0, 8e9, 1e11), Request(64.0, 1e12, 1e13))

    serial = await store.ordering.charge(
        charges(
            reference=reference,
            notes={batch.batch_id: NOTES},
            usage=[usage],
            windows=[window, replace(window, level=ServiceLevel.NORMAL)],
            standings={MINE: LeafStanding(0.25, 1.0, held_pe=3.0)},
        )
    )

    view = await store.ordering.view()
    assert (serial, view.serial, view.reference) == (1, 1, reference)
    assert view.batches[0].notes == NOTES
    assert list(view.usage) == [usage]
    assert list(view.windows) == [window, replace(window, level=ServiceLevel.NORMAL)]


async def test_of_two_orderings_at_once_only_the_first_charges(store: Store) -> None:
    first = LeafUsage(MINE, DecayedUsage(Amounts(flop=1.0), NOW))
    assert await store.ordering.charge(charges(usage=[first])) == 1

    second = LeafUsage(MINE, DecayedUsage(Amounts(flop=2.0), NOW))
    assert await store.ordering.charge(charges(usage=[second])) is None

    assert list((await store.ordering.view()).usage) == [first]


async def test_windows_add_up_and_old_ones_are_forgotten(store: Store) -> None:
    window = WindowUsage(MINE, ServiceLevel.NORMAL, Instant(NOW), Seconds(100.0), 7.0)
    old = replace(window, starts_at=Instant(NOW - 1000.0))
    await store.ordering.charge(charges(windows=[old, window]))

    await store.ordering.charge(charges(serial=1, windows=[replace(window, flop=-2.0)], windows_from=NOW))

    assert list((await store.ordering.view()).windows) == [replace(window, flop=5.0)]


async def test_submission_sees_standing_and_limits_of_submitter(store: Store) -> None:
    await a_submitted_batch(store)
    standing = LeafStanding(0.25, 1.0, user_delta=-3.0, accuracy=0.9, held_pe=3.0)
    await store.ordering.charge(charges(standings={MINE: standing}))
    grant = Grant(AccountId(1), 10.0, NOW, Seconds(100.0))
    await store.ordering_rules.put_grant(AccountId(1), granted_su=10.0, starts_at=NOW, period_s=Seconds(100.0))
    limit = Limit(Scope.SUBMITTER, Quantity.BATCHES, hard=2.0)
    await store.ordering_rules.put_limit(limit)

    async with store.submissions.submission() as writer:
        known = await writer.order(*MINE, app_id=AppId(9), queue="normal")

    assert (known.standing, known.reference, known.grant) == (standing, Reference(NOW), grant)
    assert list(known.limits) == [limit]
    assert known.active == {Scope.SUBMITTER: 1, Scope.ACCOUNT: 1, Scope.APP: 0, Scope.QUEUE: 1}


async def test_submission_sees_grant_of_nearest_ancestor(store: Store) -> None:
    people, rules = store.people, store.ordering_rules
    for name, parent in (("lab", None), ("group", "lab"), ("team", "group")):
        await people.add_account(name, parent=parent, shares=1.0)
    ids = {one.name: one.account_id for one in await people.accounts()}
    await people.add_submitter("ada", account="team", shares=1.0, now=NOW)
    ada = (await people.submitter("ada")).submitter_id
    for name, granted_su in (("lab", 5.0), ("group", 7.0)):
        await rules.put_grant(ids[name], granted_su=granted_su, starts_at=NOW, period_s=Seconds(100.0))

    async with store.submissions.submission() as writer:
        below = await writer.order(ada, ids["team"], app_id=AppId(1), queue="normal")
        above = await writer.order(ada, ids["lab"], app_id=AppId(1), queue="normal")

    assert below.grant == Grant(ids["group"], 7.0, NOW, Seconds(100.0))
    assert above.grant == Grant(ids["lab"], 5.0, NOW, Seconds(100.0))


async def test_members_come_with_what_they_may_do(store: Store) -> None:
    await store.people.permit_submitter("default", [Permission.DEADLINE, Permission.RAISE])

    [member] = (await store.ordering.view()).members
    assert member.permissions == ("deadline", "raise")


async def test_submitter_is_unknown_before_first_ordering(store: Store) -> None:
    async with store.submissions.submission() as writer:
        known = await writer.order(*MINE, app_id=AppId(1), queue="normal")

    assert (known.standing, known.reference, known.grant, list(known.limits)) == (None, None, None, [])


async def test_batches_move_to_given_places(store: Store) -> None:
    first, second = await a_submitted_batch(store), await a_submitted_batch(store)

    moved = await store.ordering.move(
        [StoredPlace(first.batch_id, 1, 5.0), StoredPlace(second.batch_id, 1, -5.0, sent_most=7)]
    )

    assert moved == 2
    ready = await store.waiting.ready_batches(10)
    assert [(one.batch_id, one.order_tier, one.order_key, one.sent_most) for one in ready] == [
        (second.batch_id, 1, -5.0, 7),
        (first.batch_id, 1, 5.0, None),
    ]
    assert list(await store.ordering_rules.in_order(1)) == [second.batch_id]
    places = await store.ordering_rules.places(
        [first.batch_id, second.batch_id, BatchId(99)], {first.app_id}, without=()
    )
    assert places == {first.batch_id: PlaceInOrder(2, 2), second.batch_id: PlaceInOrder(1, 2)}


async def test_batch_without_unsent_instances_has_no_place(store: Store) -> None:
    await a_registered_version(store)
    sent, next_, last = [await a_submitted_batch(store, jobs=1, order_key=float(key)) for key in range(3)]
    await a_sent_instance(store, sent.batch_id, await a_registered_host(store))
    await store.waiting.ready_batches(9)  # unmarks it
    rules, ids = store.ordering_rules, [sent.batch_id, next_.batch_id, last.batch_id]

    assert await rules.places(ids, {sent.app_id}, without=()) == {
        next_.batch_id: PlaceInOrder(1, 2),
        last.batch_id: PlaceInOrder(2, 2),
    }
    assert await rules.around(place_of(last), 9, without=()) == ([next_.batch_id], [])


@pytest.mark.parametrize(
    ("kind", "name"), [(Restricted.BATCH, "1"), (Restricted.APP, "1"), (Restricted.QUEUE, "normal")]
)
async def test_paused_batch_has_no_place(store: Store, kind: Restricted, name: str) -> None:
    await a_registered_version(store)
    paused, last = await a_submitted_batch(store), await a_submitted_batch(store, queue="bonus")
    await store.restrictions.put(Restriction(kind, name, 0, "why", "root", NOW))

    places = await store.ordering_rules.places([paused.batch_id, last.batch_id], {paused.app_id}, without=())

    assert places.keys() == ({last.batch_id} if kind is not Restricted.APP else set())


async def test_batches_that_are_not_sent_have_no_place(store: Store) -> None:
    """Otherwise a batch moves ahead of others without being sent any earlier."""
    await a_registered_version(store)
    paused, blocked, last, left = [await a_submitted_batch(store, jobs=1, order_key=float(key)) for key in range(4)]
    rules, ids = store.ordering_rules, [one.batch_id for one in (paused, blocked, last, left)]
    await store.ordering.move([StoredPlace(blocked.batch_id, 0, 1.0, hold="2 of at most 2 jobs")])
    await store.restrictions.put(Restriction(Restricted.BATCH, str(paused.batch_id), 0, "why", "root", NOW))

    assert await rules.places(ids, {last.app_id}, without=[left.batch_id]) == {last.batch_id: PlaceInOrder(1, 1)}
    assert await rules.places(ids, set(), without=()) == {}


async def test_batch_with_only_a_retry_unsent_has_no_place(store: Store) -> None:
    """Otherwise the positions of others change whenever a job fails."""
    await a_registered_version(store)
    sent, next_ = [await a_submitted_batch(store, jobs=1, order_key=float(key), qos=QoS.AFAP) for key in range(2)]
    await a_retry(store, await a_registered_host(store), sent.batch_id)
    rules, waiting, apps = (
        store.ordering_rules,
        as_postgres(store).waiting,
        (await store.applications.load_catalogue()).sent_apps(),
    )

    assert await rules.places([sent.batch_id, next_.batch_id], apps, without=()) == {next_.batch_id: PlaceInOrder(1, 1)}
    assert await rules.in_order(9) == [next_.batch_id]
    assert await rules.around(FIRST_PLACE, 9, without=()) == ([], [next_.batch_id])
    assert [one.batch_id for one in await waiting.ready_batches(9)] == [sent.batch_id, next_.batch_id]
    assert [one.batch_id for one in await waiting.afap_or_due(9, apps)] == [next_.batch_id]
    assert await waiting.work_before(place_of(next_), 9, apps, without=()) == WorkAhead(0, 0)


async def test_second_instances_of_sent_jobs_give_no_place(store: Store) -> None:
    await a_registered_version(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    rules, ids = store.ordering_rules, [batch.batch_id]
    before = await rules.with_fresh(ids)
    await report(store, host, a_report(sent))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([JobSettlement(facts.job_id, facts.serial, facts.state, NOW, hasten=True)])

    assert (before, await rules.with_fresh(ids)) == ({batch.batch_id}, set())
    assert await rules.places(ids, {batch.app_id}, without=()) == {}
    assert (await store.views.batch(batch.batch_id)).counts.unsent == 1


async def test_a_held_batch_is_not_drawn_from_until_it_is_let_go(store: Store) -> None:
    batch = await a_submitted_batch(store)

    await store.ordering.move([StoredPlace(batch.batch_id, 0, 0.0, hold="2 of at most 2 jobs")])
    assert list(await store.waiting.ready_batches(10)) == []
    assert (await store.views.batch(batch.batch_id)).hold == "2 of at most 2 jobs"

    await store.ordering.move([StoredPlace(batch.batch_id, 0, 0.0)])
    assert [one.batch_id for one in await store.waiting.ready_batches(10)] == [batch.batch_id]


async def test_a_held_batch_can_be_aborted(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.ordering.move([StoredPlace(batch.batch_id, 0, 0.0, hold="a limit")])

    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    assert await store.ordering.move([StoredPlace(batch.batch_id, 0, 9.0)]) == 0
    assert list(await store.waiting.ready_batches(10)) == []


async def test_an_ended_batch_is_seen_until_it_is_forgotten(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    [one] = (await store.ordering.view()).batches
    assert one.batch.state is BatchState.ABORTED

    await store.ordering.charge(charges(forgotten=[batch.batch_id]))

    assert list((await store.ordering.view()).batches) == []


async def test_breakdown_is_kept_until_batch_ends(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.ordering.explain({batch.batch_id: {"total": 1.5, "limits": ["a", "b"], "clamp": None}}, now=NOW)
    await store.ordering.explain({batch.batch_id: {"total": 2.5}}, now=later(NOW, 60.0))

    assert await store.ordering_rules.breakdowns([batch.batch_id, BatchId(99)]) == {batch.batch_id: {"total": 2.5}}
    assert (await store.ordering.view()).batches[0].explained
    await store.ordering.charge(charges(forgotten=[batch.batch_id]))
    assert await store.ordering_rules.breakdowns([batch.batch_id]) == {}


async def test_used_fractions_come_from_valid_results(store: Store) -> None:
    host = await a_registered_host(store, flop_per_s=1e9)
    facts = await a_reported_job(store, host)  # 3,000 s on one core, estimated at 3,600
    assert await store.ordering.used_fractions([facts.batch_id]) == {}  # it is not yet valid

    await store.unsettled.settle([valid(facts)])

    [used] = (await store.ordering.used_fractions([facts.batch_id]))[facts.batch_id]
    assert used == pytest.approx(3000.0 / 3600.0)


async def test_the_reference_is_the_median_of_hosts_that_called_lately(store: Store) -> None:
    for ncpus in (2, 4, 64):
        await a_registered_host(store, ncpus=ncpus, ram_bytes=ncpus * 1e9, disk_free_bytes=1e10, last_rpc_at=NOW)
    await a_registered_host(store, ncpus=1000, last_rpc_at=later(NOW, -1e6))

    found = await store.ordering.reference(active_since=later(NOW, -100.0), now=NOW)

    assert (found.at, found.flop_per_s) == (NOW, 1e9)
    assert found.host == Request(4.0, 4e9, 1e10)
    assert found.most == Request(64.0, 64e9, 1e10)
    assert found.pool_flop_per_s == pytest.approx(70e9)


async def test_without_hosts_the_reference_is_one_core(store: Store) -> None:
    assert await store.ordering.reference(active_since=NOW, now=NOW) == Reference(NOW)


async def test_submitter_has_own_shares_in_further_accounts(store: Store) -> None:
    lab = await store.people.add_account("lab", parent=None, shares=1.0)
    await store.people.put_membership("default", account="lab", shares=2.0)
    await store.people.put_membership("default", account="lab", shares=3.0)

    assert await store.people.memberships(SubmitterId(1)) == {lab.account_id: 3.0}
    members = (await store.ordering.view()).members
    assert [(one.account_id, one.shares) for one in members] == [(AccountId(1), 1.0), (lab.account_id, 3.0)]
    with pytest.raises(NotFoundError, match="no account"):
        await store.people.put_membership("default", account="attic", shares=1.0)


async def test_permissions_are_given_and_taken(store: Store) -> None:
    await store.people.permit_account("default", [Permission.RAISE, Permission.EXPEDITE])
    await store.people.permit_submitter("default", [Permission.EXPEDITE])

    assert [account.permissions for account in await store.people.accounts()] == [("expedite", "raise")]
    assert (await store.people.submitter("default")).permissions == ("expedite",)
    await store.people.permit_submitter("default", [])
    assert (await store.people.submitter("default")).permissions == ()
    with pytest.raises(NotFoundError, match="no submitter"):
        await store.people.permit_submitter("stranger", [])


async def test_a_grant_keeps_what_was_used_when_it_is_changed(store: Store) -> None:
    rules = store.ordering_rules
    await rules.put_grant(AccountId(1), granted_su=10.0, starts_at=NOW, period_s=Seconds(100.0))
    used = Grant(AccountId(1), 10.0, later(NOW, 100.0), Seconds(100.0), used_su=4.0, reserved_su=1.0)
    await store.ordering.charge(charges(grants=[used]))
    assert list(await rules.grants()) == [used]

    await rules.put_grant(AccountId(1), granted_su=20.0, starts_at=NOW, period_s=Seconds(50.0))

    changed = replace(used, granted_su=20.0, period_start_at=NOW, period_s=Seconds(50.0))
    assert list(await rules.grants()) == [changed]
    await rules.drop_grant(AccountId(1))
    assert list(await rules.grants()) == []


async def test_there_is_one_limit_of_each_kind_and_name(store: Store) -> None:
    rules = store.ordering_rules
    everybodys = Limit(Scope.SUBMITTER, Quantity.JOBS, soft=5.0)
    adas = Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", hard=9.0)
    for limit in (adas, everybodys, replace(adas, hard=10.0)):
        await rules.put_limit(limit)

    assert list(await rules.limits()) == [everybodys, replace(adas, hard=10.0)]
    await rules.drop_limit(Scope.SUBMITTER, Quantity.JOBS, None)
    assert list(await rules.limits()) == [replace(adas, hard=10.0)]
    with pytest.raises(NotFoundError, match="submitter jobs"):
        await rules.drop_limit(Scope.SUBMITTER, Quantity.JOBS, None)


async def test_the_user_priority_of_an_active_batch_can_be_changed(store: Store) -> None:
    batch = await a_submitted_batch(store)

    await store.ordering_rules.set_user_priority(batch.batch_id, -512)

    assert (await store.views.batch(batch.batch_id)).user_priority == -512
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    with pytest.raises(NotFoundError, match="active batch"):
        await store.ordering_rules.set_user_priority(batch.batch_id, 0)


async def test_level_and_queue_of_active_batch_can_change(store: Store) -> None:
    batch = await a_submitted_batch(store)

    await store.ordering_rules.set_service(batch.batch_id, level=ServiceLevel.STANDBY, queue=None)
    await store.ordering_rules.set_service(batch.batch_id, level=None, queue="express")

    found = await store.views.batch(batch.batch_id)
    assert (found.level, found.queue) == (ServiceLevel.STANDBY, "express")
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    with pytest.raises(NotFoundError, match="active batch"):
        await store.ordering_rules.set_service(batch.batch_id, level=None, queue="normal")


async def test_level_that_is_a_tier_acts_at_once(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.ordering.explain({batch.batch_id: {"level": "normal", "tier": 2, "total": 7.0}}, now=NOW)

    await store.ordering_rules.set_service(batch.batch_id, level=ServiceLevel.STANDBY, queue=None, tiers=LEVEL_TIERS)
    await store.ordering_rules.set_service(batch.batch_id, level=ServiceLevel.STANDBY, queue=None, tiers=LEVEL_TIERS)

    assert (await store.views.batch(batch.batch_id)).order_tier == batch.order_tier + 40
    records = await store.ordering_rules.breakdowns([batch.batch_id])
    assert records[batch.batch_id] == {"level": "standby", "tier": 42, "total": 7.0}


async def test_order_of_before_a_change_of_level_keeps_its_tier(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await store.ordering_rules.set_service(batch.batch_id, level=ServiceLevel.EXPEDITE, queue=None, tiers=LEVEL_TIERS)

    await store.ordering.move([StoredPlace(batch.batch_id, 0, 9.0, level=ServiceLevel.NORMAL)])
    late = await store.views.batch(batch.batch_id)
    await store.ordering.move([StoredPlace(batch.batch_id, -38, 9.0, level=ServiceLevel.EXPEDITE)])

    assert (late.order_tier, late.order_key) == (LEVEL_TIERS[ServiceLevel.EXPEDITE], 9.0)
    assert (await store.views.batch(batch.batch_id)).order_tier == -38


async def test_account_of_batch_changes_until_first_dispatch(store: Store) -> None:
    batch = await a_submitted_batch(store)
    await a_registered_version(store)
    other = await store.people.add_account("other", parent=None, shares=1.0)
    await store.ordering_rules.set_account(batch.batch_id, other.account_id)
    assert (await store.views.batch(batch.batch_id)).account_id == other.account_id

    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))
    with pytest.raises(NotFoundError, match="without sent instances"):
        await store.ordering_rules.set_account(batch.batch_id, batch.account_id)


async def test_ended_batch_is_charged_its_usage_in_logical_time(store: Store) -> None:
    batch = await a_submitted_batch(store, logical_start_at=NOW, charged_s=Seconds(50.0))
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    [one] = (await store.ordering.view()).batches
    assert (one.charged_s, one.refunded_s) == (50.0, 50.0)  # nothing of it was sent
    assert (await store.people.submitter("default")).logical_at == NOW
    correction = LogicalCorrection(batch.batch_id, SubmitterId(1), Seconds(0.0), Seconds(20.0))

    await store.ordering.charge(charges(corrections=[replace(correction, charged_s=Seconds(1.0))]))
    assert (await store.people.submitter("default")).logical_at == NOW  # charged otherwise in the meantime
    assert len((await store.ordering.view()).batches) == 1

    await store.ordering.charge(charges(serial=1, corrections=[correction]))
    assert (await store.people.submitter("default")).logical_at == NOW + 20.0
    assert list((await store.ordering.view()).batches) == []


async def test_batches_around_a_place_are_active_and_in_order(store: Store) -> None:
    keys = (1.0, 4.0, 0.0, 3.0, 2.0, 2.5)
    first, last, zero, third, second, ended = [await a_submitted_batch(store, order_key=key) for key in keys]
    await store.submissions.abort_batch(ended.batch_id, now=NOW)
    rules, ids = store.ordering_rules, [one.batch_id for one in (zero, first, second, third, last)]

    assert await rules.around(place_of(second), 2, without=()) == (ids[:2], ids[3:])
    assert await rules.around(place_of(second), 1, without=[first.batch_id]) == (ids[:1], ids[3:4])
    assert await rules.around(FIRST_PLACE, 9, without=ids[1:4]) == ([], [ids[0], ids[4]])
