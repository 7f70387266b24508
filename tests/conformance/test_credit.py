"""Tests that results earn credit when they become valid: by the job's estimate, once, for host and volunteer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.credit import Credit, credit_of
from domain.settlement import JobFacts
from domain.units import Flop, Instant, Seconds, later
from lifecycle.settle import settle
from tests.builders import NOW
from tests.conformance.test_history import move
from tests.conformance.to_settle import S, a_reported_job
from tests.stores import Store
from tests.worlds import (
    RegisteredHost,
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    read,
    report,
    waiting_of,
)

WEEK_S = 7 * 86400.0


async def settled(store: Store, facts: JobFacts, now: Instant, *, wrong: frozenset[int] = frozenset()) -> None:
    """Settle the job; the outputs of `wrong` instances differ from the others."""
    compared = [one.instance_id for one in facts.instances if one.state in (S.REPORTED, S.INCONCLUSIVE)]
    groups = {one: 1 + one if one in wrong else 0 for one in compared}
    assert await store.unsettled.settle([settle(facts, groups, now=now, max_lost=9)]) == 1


async def standing(store: Store, host: RegisteredHost) -> tuple[Credit, Credit]:
    found = (await read(store, host)).standing
    return found.host, found.volunteer


async def granted(store: Store, facts: JobFacts) -> list[float | None]:
    return [one.credit for one in (await store.views.job(facts.job_id)).instances]


async def test_valid_result_earns_the_estimate_of_its_job(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host)
    credit = credit_of(facts.job_class.fpops_est_flop)

    await settled(store, facts, later(NOW, 60.0))

    own, volunteer = await standing(store, host)
    assert own == volunteer
    assert own.total == pytest.approx(credit)
    assert own.at == later(NOW, 60.0)
    assert own.average == pytest.approx(credit * 0.6931471805599453 / 7)
    assert await granted(store, facts) == [pytest.approx(credit)]
    [result] = await store.volunteer_views.results(host.volunteer_id, outcome=None, host_id=None, after=None, limit=9)
    assert result.credit == pytest.approx(credit)
    assert (await store.volunteer_views.totals(host.volunteer_id)).credit == volunteer
    assert (await store.volunteer_views.host(host.volunteer_id, host.host_id)).credit == own
    assert (await store.host_lists.listed([host.host_id]))[host.host_id].credit == own


async def test_average_decays_by_half_in_a_week(store: Store) -> None:
    host = await a_registered_host(store)
    first = await a_reported_job(store, host)
    await settled(store, first, NOW)
    before, _ = await standing(store, host)
    second = await a_reported_job(store, host)

    await settled(store, second, later(NOW, WEEK_S))

    own, _ = await standing(store, host)
    expected = before.plus(credit_of(second.job_class.fpops_est_flop), later(NOW, WEEK_S))
    assert own.total == pytest.approx(expected.total)
    assert own.average == pytest.approx(expected.average)
    assert expected.average == pytest.approx(before.average / 2 + expected.total / 2 / 7 / 2)


async def test_claims_of_a_client_do_not_change_its_credit(store: Store) -> None:
    """The second host claims a thousand times the speed and the time."""
    honest = await a_registered_host(store)
    boastful = await a_registered_host(store, flop_per_s=honest.host.flop_per_s * 1000.0)
    batch = await a_submitted_batch(store, jobs=2)
    waiting = await waiting_of(store, batch.batch_id)
    for host, one, elapsed_s in ((honest, waiting[0], 40.0), (boastful, waiting[1], 1e9)):
        sent = await a_sent_instance(store, batch.batch_id, host, one)
        await report(store, host, a_report(sent, elapsed_s=Seconds(elapsed_s), cpu_s=Seconds(elapsed_s)))

    for facts in await store.unsettled.unsettled(9, now=NOW):
        await settled(store, facts, NOW)

    assert await standing(store, honest) == await standing(store, boastful)
    assert (await standing(store, honest))[0].total > 0


async def test_result_that_disagrees_earns_nothing(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    hosts = [await a_registered_host(store) for _ in range(2)]
    for host in hosts:
        await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host)))
    [facts] = await store.unsettled.unsettled(9, now=NOW)
    await settled(store, facts, NOW, wrong=frozenset({facts.instances[1].instance_id}))
    third = await a_registered_host(store)
    await report(store, third, a_report(await a_sent_instance(store, batch.batch_id, third)))
    [facts] = await store.unsettled.unsettled(9, now=NOW)

    await settled(store, facts, NOW, wrong=frozenset({facts.instances[1].instance_id}))

    credit = pytest.approx(credit_of(facts.job_class.fpops_est_flop))
    assert await granted(store, facts) == [credit, None, credit]
    assert [(await standing(store, host))[0].total for host in (*hosts, third)] == [credit, 0.0, credit]


async def test_stale_settlement_grants_nothing_twice(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host)
    await settled(store, facts, NOW)
    before = await standing(store, host)

    assert await store.unsettled.settle([settle(facts, {facts.instances[0].instance_id: 0}, now=NOW, max_lost=9)]) == 0

    assert await standing(store, host) == before


async def test_credit_of_a_result_moves_to_the_history_with_it(store: Store) -> None:
    host = await a_registered_host(store)
    facts = await a_reported_job(store, host)
    await settled(store, facts, NOW)

    assert (await move(store)).jobs == 1

    assert await granted(store, facts) == [pytest.approx(credit_of(facts.job_class.fpops_est_flop))]


async def test_hosts_of_a_volunteer_add_up(store: Store) -> None:
    first = await a_registered_host(store)
    second = replace(
        await a_registered_host(store, volunteer_id=first.volunteer_id, host_cpid="f" * 32),
        account_key=first.account_key,
    )
    for host in (first, second):
        await settled(store, await a_reported_job(store, host), NOW)

    (own, total), (other, same) = await standing(store, first), await standing(store, second)
    assert total == same
    assert total.total == pytest.approx(own.total + other.total)


def test_a_day_at_one_gigaflop_is_200_cobblestones() -> None:
    assert credit_of(Flop(86400.0 * 1e9)) == pytest.approx(200.0)
