"""Tests ordering passes by the real services on an in-memory store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from domain.batches import Batch
from domain.errors import InvalidInputError
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Permission
from domain.units import BatchId, Instant, Seconds, later
from jobs.ordering.ordering_pass import Orderer, OrderingReport
from jobs.spec import parse_batch
from jobs.submission import SubmissionPorts, submit
from tests.builders import NOW
from tests.conformance.to_settle import valid
from tests.facts import missing, states
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock, KnownFiles, a_project
from tests.worlds import (
    RegisteredHost,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    report,
    waiting_of,
)

MINUTE_S = 60.0


class Project:
    """A project with the submitters ada, of the lab, and bob, of the other lab."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = HandClock()
        self.settings: dict[str, object] = {}

    async def order(self, **settings: object) -> OrderingReport:
        """Run one pass, with these ordering settings from now on."""
        for key, value in settings.items():
            await self.store.settings.set_setting(f"ordering.{key}", value, now=NOW, who="test", why="")
        return await (await self._orderer()).run_once()

    async def _orderer(self) -> Orderer:
        catalogue = await self.store.applications.load_catalogue()
        return Orderer(self.store.ordering, lambda: catalogue, self.clock)

    async def submit(self, who: str = "ada", jobs: int = 10, **changes: object) -> BatchId:
        table = {"app": "pi", "qos": "throughput", "submitter": who, "jobs": {"fpops_est": 3.6e12, "count": jobs}}
        ports = SubmissionPorts(self.store.submissions, self.store.people, self.store.applications, KnownFiles())
        ordering = (await self.store.applications.load_catalogue()).settings.ordering
        return await submit(parse_batch({**table, **changes}), ports=ports, ordering=ordering, clock=self.clock)

    async def send(self, batch_id: BatchId, number: int = 1) -> RegisteredHost:
        """Send jobs of the batch to a new host."""
        host = await a_registered_host(self.store, flop_per_s=1e9, ncpus=4, last_rpc_at=self.clock.now())
        for _ in range(number):
            await a_sent_instance(self.store, batch_id, host, sent_at=self.clock.now())
        return host

    async def batch(self, batch_id: BatchId) -> Batch:
        return await self.store.views.batch(batch_id)

    async def record(self, batch_id: BatchId) -> Mapping[str, Any]:
        return (await self.store.ordering_rules.breakdowns([batch_id]))[batch_id]

    async def terms(self, batch_id: BatchId) -> dict[str, float | None]:
        """Return the values of the breakdown's terms."""
        return {term["name"]: term["value"] for term in (await self.record(batch_id))["components"]}

    async def ready(self) -> list[BatchId]:
        return [batch.batch_id for batch in await self.store.waiting.ready_batches(100)]

    def later(self, seconds: float) -> None:
        self.clock.time = later(self.clock.time, seconds)


@pytest.fixture
async def project() -> Project:
    store = await a_project()
    await store.people.add_submitter("bob", account="other lab", shares=1.0, now=NOW)
    await a_registered_version(store)
    return Project(store)


# ------------------------------------------------------------------ places


async def test_logical_time_is_the_order_unless_another_is_chosen(project: Project) -> None:
    long, short = await project.submit(jobs=1000), await project.submit("bob", jobs=1)
    before = [await project.batch(one) for one in (long, short)]

    done = await project.order()

    assert (done.policy, done.batches, done.moved, done.late) == ("logical_time", 2, 0, False)
    assert [await project.batch(one) for one in (long, short)] == before
    assert await project.ready() == [short, long]


async def test_a_policy_is_changed_at_run_time_and_batches_move(project: Project) -> None:
    long, short = await project.submit(jobs=1000), await project.submit("bob", jobs=1)

    done = await project.order(policy="fifo")

    assert (done.policy, done.moved) == ("fifo", 2)
    assert await project.ready() == [long, short]
    assert (await project.order()).moved == 0  # no change


async def test_who_was_served_goes_after_who_was_not(project: Project) -> None:
    adas, bobs = await project.submit("ada"), await project.submit("bob")
    await project.send(adas, 5)

    await project.order(policy="multifactor")

    assert await project.ready() == [bobs, adas]
    assert (await project.terms(bobs))["fairshare"] == 1.0  # no usage
    assert (await project.terms(adas))["fairshare"] == 0.125  # all usage: three times its share of a third


async def test_usage_is_forgotten_by_half_in_a_half_life(project: Project) -> None:
    adas = await project.submit("ada")
    await project.send(adas, 4)
    await project.order(half_life_s=1000.0)
    [usage] = [one for one in (await project.store.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.usage.amounts.flop == 4 * 3.6e12
    assert usage.usage.read(later(NOW, 1000.0), Seconds(1000.0)).flop == 2 * 3.6e12


async def test_lost_work_is_refunded_and_good_work_corrected(project: Project) -> None:
    store, adas = project.store, await project.submit("ada", jobs=30)
    for _ in range(6):  # six hosts take 1,800 s of an estimated 3,600 s
        host = await a_registered_host(store, flop_per_s=1e9, ncpus=4, last_rpc_at=NOW)
        sent = await a_sent_instance(store, adas, host)
        await report(store, host, a_report(sent, elapsed_s=Seconds(1800.0)))
    for facts in await store.unsettled.unsettled(100, now=NOW):
        await store.unsettled.settle([valid(facts)])

    await project.order()

    [usage] = [one for one in (await store.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.usage.amounts.flop == pytest.approx(6 * 1.8e12)
    assert usage.accuracies == (0.5,) * 6


async def test_the_same_is_never_charged_twice(project: Project) -> None:
    adas = await project.submit("ada")
    await project.send(adas, 3)
    await project.order()
    first = list((await project.store.ordering.view()).usage)

    done = await project.order()

    assert done.charged == 0
    assert list((await project.store.ordering.view()).usage) == first


async def test_a_new_batch_stands_by_its_submitters_usage_at_once(project: Project) -> None:
    adas = await project.submit("ada")
    await project.send(adas, 5)
    await project.order(policy="multifactor")

    again, bobs = await project.submit("ada"), await project.submit("bob")

    assert (await project.ready())[0] == bobs
    fairshare = (await project.terms(again))["fairshare"]
    assert fairshare is not None and fairshare < 0.5


async def test_equal_access_counts_the_work_held(project: Project) -> None:
    adas, bobs = await project.submit("ada"), await project.submit("bob")
    await project.send(adas, 2)
    await project.order(policy="equal_access")
    assert await project.ready() == [bobs, adas]
    assert (await project.batch(adas)).order_key == 2.0


async def test_a_batch_that_is_passed_over_gains(project: Project) -> None:
    adas, bobs = await project.submit("ada"), await project.submit("bob")
    await project.order(policy="equal_access")
    await project.send(bobs, 1)
    await project.order()
    assert (await project.terms(adas))["bypassed"] == 1


async def test_breakdowns_sum_to_the_total_and_say_by_which_weights(project: Project) -> None:
    adas = await project.submit("ada", user_priority=-512)
    project.later(3600.0)
    await project.order(policy="multifactor", wait_weight=7.0)

    record = await project.record(adas)

    assert record["policy"] == "multifactor"
    assert record["computed_at"] == NOW + 3600.0
    assert record["total"] == sum(term["points"] for term in record["components"])
    parts = {term["name"]: (term["raw"], term["weight"]) for term in record["components"]}
    assert parts["wait"] == (3600.0, 7.0)
    assert parts["user"][0] == -512
    assert (record["queue"], record["hold"]) == ("normal", None)


async def test_every_new_batch_is_explained_at_once(project: Project) -> None:
    adas = await project.submit()
    assert (await project.record(adas))["batch"] == adas
    assert (await project.order()).explained == 0


# ------------------------------------------------------------------ limits


async def test_a_hard_limit_holds_a_batch_and_stops_its_clock(project: Project) -> None:
    adas = await project.submit()
    await project.send(adas, 2)
    await project.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, hard=2.0))
    project.later(100.0)

    done = await project.order()

    assert (done.held, await project.ready()) == (1, [])
    hold = (await project.batch(adas)).hold
    assert not missing(hold or "", "hard", "submitter ada:", "2 + 1 > 2 jobs")
    assert (await project.record(adas))["hold"] == hold
    project.later(500.0)
    [one] = (await project.store.ordering.view()).batches
    assert one.notes is not None
    assert one.notes.clock.waited_s(project.clock.now()) == 100.0

    await project.store.ordering_rules.drop_limit(Scope.SUBMITTER, Quantity.JOBS, None)
    await project.order()
    assert await project.ready() == [adas]


async def test_headroom_is_passed_to_the_feeder(project: Project) -> None:
    adas = await project.submit(jobs=10)
    await project.send(adas, 2)
    await project.store.ordering_rules.put_limit(Limit(Scope.ACCOUNT, Quantity.JOBS, "lab", hard=5.0))

    await project.order()

    assert (await project.batch(adas)).sent_most == 5


async def test_who_is_over_a_soft_limit_goes_after_who_is_not(project: Project) -> None:
    adas, bobs = await project.submit("ada", jobs=1), await project.submit("bob", jobs=1000)
    await project.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOBS, "ada", soft=0.0))

    await project.order()

    assert await project.ready() == [bobs, adas]
    [soft] = (await project.record(adas))["limits"]
    assert not missing(soft, "soft", "submitter ada:", "0 + 1 > 0 jobs")


async def test_a_cap_on_usage_holds_only_while_others_wait(project: Project) -> None:
    adas = await project.submit("ada")
    await project.send(adas, 2)
    await project.order(targets="user:ada=10%")
    await project.order()
    assert await project.ready() == [adas]

    bobs = await project.submit("bob")
    await project.order()

    assert await project.ready() == [bobs]
    assert "exceed the cap of 10 %" in ((await project.batch(adas)).hold or "")


async def test_a_submission_over_a_hard_limit_is_refused(project: Project) -> None:
    await project.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.BATCHES, hard=1.0))
    await project.submit("ada")
    with states(InvalidInputError, "hard", "submitter ada:", "1 + 1 > 1 batches"):
        await project.submit("ada")
    await project.submit("bob")


async def test_standby_is_free_of_limits_on_size(project: Project) -> None:
    await project.store.ordering_rules.put_limit(Limit(Scope.SUBMITTER, Quantity.JOB_RUNTIME_S, hard=60.0))
    with pytest.raises(InvalidInputError, match="> 60 seconds per job"):
        await project.submit()
    await project.submit(level="standby")


async def test_expedite_and_raised_priorities_need_a_permission(project: Project) -> None:
    with states(InvalidInputError, "level:", "normal or standby:", "expedite permission"):
        await project.submit(level="expedite")
    with states(InvalidInputError, "user_priority:", "-1024 to 0:"):
        await project.submit(user_priority=1)
    await project.store.people.permit_account("lab", [Permission.EXPEDITE])
    await project.store.people.permit_submitter("ada", [Permission.RAISE])

    batch = await project.batch(await project.submit(level="expedite", user_priority=5))

    assert (batch.level, batch.user_priority) == ("expedite", 5)


async def test_a_batch_may_be_submitted_in_a_further_account(project: Project) -> None:
    with states(InvalidInputError, "account:", "submitter ada (lab)", "got 'other lab'"):
        await project.submit("ada", account="other lab")
    await project.store.people.put_membership("ada", account="other lab", shares=1.0)

    batch_id = await project.submit("ada", account="other lab")
    await project.send(batch_id, 1)
    await project.order()

    [usage] = [one for one in (await project.store.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.leaf == ((await project.batch(batch_id)).submitter_id, (await project.batch(batch_id)).account_id)


async def test_an_unknown_queue_is_refused_by_name(project: Project) -> None:
    with states(InvalidInputError, "queue:", "express, normal, bonus", "got 'fast'"):
        await project.submit(queue="fast")


async def test_a_batch_of_changed_importance_is_explained_next(project: Project) -> None:
    await project.store.settings.set_setting("ordering.policy", "multifactor", now=NOW, who="test", why="")
    first, last = await project.submit(), await project.submit("bob")
    catalogue = await project.store.applications.load_catalogue()
    orderer = Orderer(project.store.ordering, lambda: catalogue, project.clock)
    for _ in range(5):  # until it is the turn of neither
        await orderer.run_once()
    assert (await orderer.run_once()).explained == 0

    await project.store.ordering_rules.set_user_priority(last, -1000)

    assert (await orderer.run_once()).explained == 1
    assert ((await project.record(last))["user_priority"], (await project.record(first))["user_priority"]) == (-1000, 0)
    assert await project.ready() == [first, last]


# ------------------------------------------------------------------ grants


async def test_a_spent_grant_makes_work_bonus(project: Project) -> None:
    store = project.store
    lab = next(account for account in await store.people.accounts() if account.name == "lab")
    await store.ordering_rules.put_grant(lab.account_id, granted_su=2.0, starts_at=NOW, period_s=Seconds(86400.0))
    adas, bobs = await project.submit("ada", queue="express"), await project.submit("bob")
    await project.order(policy="equal_access")
    assert await project.ready() == [adas, bobs]  # express comes first

    await project.send(adas, 1)  # an hour on one core, at three times the price
    await project.order()
    [grant] = await store.ordering_rules.grants()
    assert grant.used_su == 0.0
    assert grant.reserved_su == pytest.approx(3.0)
    await project.order()

    assert await project.ready() == [bobs, adas]
    unpaid = await project.batch(adas)
    assert (unpaid.unpaid, unpaid.order_tier, unpaid.job_pe) == (True, 104, 1.0)
    assert (await project.batch(await project.submit("ada"))).unpaid  # from its submission on
    for _ in range(2):  # work in progress stays reserved at its price
        await project.order()
        assert (await store.ordering_rules.grants())[0].reserved_su == pytest.approx(3.0)
        assert await project.ready() == [bobs, adas, BatchId(3)]
    assert not missing(
        (await project.record(adas))["queue"], "bonus:", "2 SU", "2027-01-16 08:00", "used 0", "reserved 3"
    )
    project.later(86400.0 * 2)
    await project.order()
    [grant] = await store.ordering_rules.grants()
    assert grant.period_start_at == Instant(NOW + 2 * 86400.0)


# ------------------------------------------------------------------ ends


async def test_ended_batch_is_dropped_without_work_in_progress(project: Project) -> None:
    adas = await project.submit("ada")
    host = await a_registered_host(project.store)
    sent = await a_sent_instance(project.store, adas, host)
    await project.store.submissions.abort_batch(adas, now=NOW)
    await project.order()
    assert len((await project.store.ordering.view()).batches) == 1

    await report(project.store, host, a_report(sent))
    await project.order()

    assert list((await project.store.ordering.view()).batches) == []


async def test_of_two_orderers_at_once_one_is_late_and_does_nothing(project: Project) -> None:
    adas = await project.submit("ada")
    await project.send(adas, 1)
    view = await project.store.ordering.view()
    await project.order()

    class Stale:
        def __getattr__(self, name: str) -> object:
            return getattr(project.store.ordering, name)

        async def view(self) -> object:
            return view

    catalogue = await project.store.applications.load_catalogue()
    done = await Orderer(Stale(), lambda: catalogue, project.clock).run_once()  # type: ignore[arg-type]  # a twin

    assert done.late
    assert len(await waiting_of(project.store, adas)) == 9


# ------------------------------------------------------------------ deadlines


async def test_a_deadline_counts_for_who_may_set_one(project: Project) -> None:
    people = project.store.people
    changes = {"policy": "components", "components": "QUEUETIMEWEIGHT=0 DEADLINEWEIGHT=1"}
    await project.order(**changes)
    dated: dict[str, Any] = {"qos": "short_deadline", "deadline_s": 1000.0}
    adas, bobs = await project.submit("ada", **dated), await project.submit("bob", **dated)
    project.later(500.0)
    await project.order()
    assert [(await project.terms(one))["DEADLINE"] for one in (adas, bobs)] == [0.0, 0.0]

    await people.permit_submitter("ada", [Permission.DEADLINE])
    await project.order(half_life_s=1e6)
    assert [(await project.terms(one))["DEADLINE"] for one in (adas, bobs)] == [500.0, 0.0]

    await people.permit_account("other lab", [Permission.DEADLINE])
    await project.order(half_life_s=2e6)
    assert (await project.terms(bobs))["DEADLINE"] == 500.0
