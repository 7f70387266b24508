"""Tests ordering passes after submissions, dispatches and reports on a store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isfinite

import pytest
import pytest_asyncio

from domain.errors import InvalidInputError
from domain.jobs import InstanceState
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Permission
from domain.units import BatchId, Flop, Instant, Seconds, later
from jobs.ordering.ordering_pass import Orderer, OrderingReport
from jobs.spec import parse_batch
from jobs.submission import SubmissionPorts, submit
from tests.builders import NOW, a_job_class
from tests.conformance.to_settle import valid
from tests.facts import missing, states
from tests.stores import Store
from tests.unit.jobs.projects import HandClock, KnownFiles
from tests.worlds import a_registered_host, a_registered_version, a_report, a_sent_instance, a_submitted_batch, report


async def submitted(store: Store, who: str, **changes: object) -> BatchId:
    table = {"app": "pi", "qos": "throughput", "submitter": who, "jobs": {"fpops_est": 3.6e12, "count": 10}, **changes}
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles())
    settings = (await store.applications.load_catalogue()).settings
    return await submit(parse_batch(table), ports=ports, ordering=settings.ordering, clock=HandClock())


async def ordered(store: Store, at_s: float = 0.0, **settings: object) -> OrderingReport:
    for key, value in settings.items():
        await store.settings.set_setting(f"ordering.{key}", value, now=NOW, who="test", why="")
    catalogue = await store.applications.load_catalogue()
    return await Orderer(store.ordering, lambda: catalogue, HandClock(later(NOW, at_s))).run_once()


async def ready(store: Store) -> Sequence[BatchId]:
    return [batch.batch_id for batch in await store.waiting.ready_batches(10)]


@pytest_asyncio.fixture(loop_scope="session")
async def project(store: Store) -> Store:
    """Ada and bob in separate accounts, below a lab and an institute."""
    await a_registered_version(store)
    for name in ("lab", "institute"):
        await store.people.add_account(name, parent=None, shares=1.0)
    await store.people.add_submitter("ada", account="lab", shares=1.0, now=NOW)
    await store.people.add_submitter("bob", account="institute", shares=1.0, now=NOW)
    return store


async def test_work_that_was_sent_moves_its_submitter_back(project: Store) -> None:
    adas, bobs = await submitted(project, "ada"), await submitted(project, "bob")
    assert await ready(project) == [adas, bobs]
    host = await a_registered_host(project, last_rpc_at=NOW)
    for _ in range(3):
        await a_sent_instance(project, adas, host)

    done = await ordered(project, policy="multifactor")

    assert (done.batches, done.moved, done.charged, done.late) == (2, 2, 1, False)
    assert await ready(project) == [bobs, adas]
    records = await project.ordering_rules.breakdowns([adas, bobs])
    assert {batch_id: record["policy"] for batch_id, record in records.items()} == {
        adas: "multifactor",
        bobs: "multifactor",
    }
    [usage] = [one for one in (await project.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.usage.amounts.flop == 3 * 3.6e12
    assert (await ordered(project)).charged == 0


async def test_what_jobs_took_corrects_what_was_charged(project: Store) -> None:
    adas = await submitted(project, "ada")
    for _ in range(5):
        host = await a_registered_host(project, flop_per_s=1e9, last_rpc_at=NOW)
        sent = await a_sent_instance(project, adas, host)
        await report(project, host, a_report(sent, elapsed_s=Seconds(1800.0)))
    await ordered(project)
    await project.unsettled.settle([valid(facts) for facts in await project.unsettled.unsettled(10, now=NOW)])

    await ordered(project)

    [usage] = [one for one in (await project.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.usage.amounts.flop == pytest.approx(5 * 1.8e12)
    assert usage.accuracies == (0.5,) * 5


async def test_limits_hold_name_themselves_and_let_go(project: Store) -> None:
    adas = await submitted(project, "ada")
    host = await a_registered_host(project, last_rpc_at=NOW)
    await a_sent_instance(project, adas, host)
    await project.ordering_rules.put_limit(Limit(Scope.ACCOUNT, Quantity.JOBS, "lab", hard=1.0))

    assert (await ordered(project)).held == 1
    assert await ready(project) == []
    held = (await project.views.batch(adas)).hold
    assert not missing(held or "", "hard", "account lab:", "1 + 1 > 1 jobs")

    await project.ordering_rules.put_limit(Limit(Scope.ACCOUNT, Quantity.JOBS, "lab", hard=4.0))
    await ordered(project, 60.0)
    assert await ready(project) == [adas]
    assert (await project.views.batch(adas)).sent_most == 4


async def test_rights_are_asked_for_and_limits_refuse(project: Store) -> None:
    with states(InvalidInputError, "level:", "expedite permission"):
        await submitted(project, "ada", level="expedite")
    await project.people.permit_submitter("ada", [Permission.EXPEDITE])
    batch = await project.views.batch(await submitted(project, "ada", level="expedite", queue="express"))
    assert (batch.level, batch.queue) == ("expedite", "express")

    await project.ordering_rules.put_limit(Limit(Scope.QUEUE, Quantity.BATCHES, "express", hard=1.0))
    with states(InvalidInputError, "hard", "queue express:", "1 + 1 > 1 batches"):
        await submitted(project, "bob", queue="express")
    await submitted(project, "bob")


async def test_usage_counts_where_it_was_submitted(project: Store) -> None:
    await project.people.put_membership("ada", account="institute", shares=3.0)
    batch_id = await submitted(project, "ada", account="institute")
    host = await a_registered_host(project, last_rpc_at=NOW)
    await a_sent_instance(project, batch_id, host)

    await ordered(project)

    ada = await project.people.submitter("ada")
    institute = next(one.account_id for one in await project.people.accounts() if one.name == "institute")
    [usage] = [one for one in (await project.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.leaf == (ada.submitter_id, institute)
    [window] = (await project.ordering.view()).windows
    assert (window.leaf, window.flop) == (usage.leaf, 3.6e12)


async def test_grants_are_reserved_on_dispatch_and_used_on_return(project: Store) -> None:
    lab = next(one.account_id for one in await project.people.accounts() if one.name == "lab")
    await project.ordering_rules.put_grant(lab, granted_su=100.0, starts_at=NOW, period_s=Seconds(1e6))
    adas = await submitted(project, "ada", queue="express")
    host = await a_registered_host(project, flop_per_s=1e9, last_rpc_at=NOW)
    sent = await a_sent_instance(project, adas, host)
    await ordered(project)
    [grant] = await project.ordering_rules.grants()
    assert grant.used_su == 0.0
    assert grant.reserved_su == pytest.approx(3.0)

    await report(project, host, a_report(sent))
    await ordered(project)

    [grant] = await project.ordering_rules.grants()
    assert grant.used_su == pytest.approx(3.0)
    assert grant.reserved_su == 0.0


async def test_of_orderings_at_once_each_dispatch_is_charged_once(project: Store) -> None:
    adas = await submitted(project, "ada")
    host = await a_registered_host(project, last_rpc_at=NOW)
    await a_sent_instance(project, adas, host)

    done = await asyncio.gather(*(ordered(project) for _ in range(4)))

    assert sum(not one.late for one in done) >= 1
    [usage] = [one for one in (await project.ordering.view()).usage if one.usage.amounts.flop]
    assert usage.usage.amounts.flop == 3.6e12


async def test_aborted_batch_refunds_unused_logical_time(project: Store) -> None:
    host = await a_registered_host(project, flop_per_s=1e9, last_rpc_at=NOW)
    adas = await submitted(project, "ada")
    charged_s = (await project.people.submitter("ada")).logical_at - NOW
    sent = await a_sent_instance(project, adas, host)  # one of ten
    await project.submissions.abort_batch(adas, now=NOW)
    assert (await project.people.submitter("ada")).logical_at - NOW == pytest.approx(charged_s / 10)  # at once

    await ordered(project)
    [under_way] = (await project.ordering.view()).batches
    assert under_way.charged_s - under_way.refunded_s == pytest.approx(charged_s / 10)

    await report(project, host, a_report(sent))
    await ordered(project)

    assert (await project.people.submitter("ada")).logical_at - NOW == pytest.approx(charged_s / 10)
    assert list((await project.ordering.view()).batches) == []


async def test_what_was_lost_after_the_abort_is_given_back_too(project: Store) -> None:
    host = await a_registered_host(project, flop_per_s=1e9, last_rpc_at=NOW)
    adas = await submitted(project, "ada")
    sent = await a_sent_instance(project, adas, host)
    await project.submissions.abort_batch(adas, now=NOW)
    await report(project, host, a_report(sent, to_state=InstanceState.ABORTED))
    await ordered(project)

    assert (await project.people.submitter("ada")).logical_at - NOW == pytest.approx(0.0, abs=1e-6)


async def test_a_second_abort_gives_nothing_back(project: Store) -> None:
    await submitted(project, "ada")
    before_s = (await project.people.submitter("ada")).logical_at - NOW
    second = await submitted(project, "ada")
    for _ in range(2):
        await project.submissions.abort_batch(second, now=NOW)

    assert (await project.people.submitter("ada")).logical_at - NOW == pytest.approx(before_s)


@pytest.mark.parametrize("policy", ["logical_time", "multifactor", "components", "equal_access", "fifo"])
async def test_stored_absurd_sizes_harm_no_batch(project: Store, policy: str) -> None:
    """A batch stored before fields had bounds comes last, and its submitter can still submit."""
    ada = await project.people.submitter("ada")
    absurd = await a_submitted_batch(
        project,
        job_class=a_job_class(fpops_est_flop=1e200, fpops_bound_flop=1e201, memory_bytes=1e300, ncpus=1e300),
        submitter_id=ada.submitter_id,
        account_id=ada.account_id,
        batch_flop=Flop(1e200),
        logical_end_at=Instant(1e194),
        charged_s=Seconds(1e194),
    )
    await a_sent_instance(project, absurd.batch_id, await a_registered_host(project, last_rpc_at=NOW))
    await project.settings.set_setting("ordering.policy", policy, now=NOW, who="test", why="")

    later_ones = [await submitted(project, who) for who in ("ada", "bob", "ada")]
    await ordered(project, 1.0)
    await project.submissions.abort_batch(absurd.batch_id, now=NOW)
    await ordered(project, 2.0)

    assert set(await ready(project)) == set(later_ones)
    after = (await project.people.submitter("ada")).logical_at
    assert isfinite(after) and after < NOW + 1e12
    assert all([isfinite((await project.views.batch(one)).order_key) for one in later_ones])


async def test_a_stored_absurd_batch_is_ordered_last(project: Store) -> None:
    absurd = await a_submitted_batch(project, logical_end_at=Instant(1e194), charged_s=Seconds(1e194))
    later_one = await submitted(project, "bob")

    await ordered(project, 1.0)

    assert await ready(project) == [later_one, absurd.batch_id]
