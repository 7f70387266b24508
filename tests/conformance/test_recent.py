"""Tests reading a project for simulation: every store returns the same computers and work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from administration.catalogue import fresh_catalogue
from administration.thresholds.recent import RecentSample, recent_project, simulated_batches
from administration.thresholds.replay import LeftOut, replay
from administration.thresholds.sizing import replay_cost
from administration.unschedulable import RefusedByAll, refused_as_json
from domain.apps import CPU
from domain.attention import FAILED_JOBS
from domain.batches import QoS
from domain.dispatch import RequestWrites
from domain.jobs import InstanceState
from domain.ordering import ServiceLevel
from domain.ranking import CutPoints, HostStatisticsRun
from domain.units import DAY_S, Seconds, later
from lifecycle.settle import settle
from simulator.population import MeasuredPopulation
from simulator.virtual_time import VirtualClock
from tests.builders import NOW, a_job_class
from tests.stores import Store, as_postgres
from tests.worlds import (
    RegisteredHost,
    a_hav_event,
    a_registered_host,
    a_registered_version,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    waiting_of,
)


async def a_host_with_a_result(store: Store, batch_id: int) -> RegisteredHost:
    """Create a host with two requests an hour apart, and a result at half its benchmark speed."""
    host = await a_registered_host(store, last_rpc_at=NOW, ncpus=4, on_fraction=0.5)
    sent = await a_sent_instance(store, batch_id, host)  # type: ignore[arg-type]
    event = a_hav_event(sent, at=NOW, speed_s_per_flop=2e-9)
    await report(store, host, a_report(sent, hav_event=event))
    said = replace(host.host, last_rpc_at=later(NOW, 3600.0))
    await store.ledger.write(RequestWrites(said, known=host.host))
    return host


async def test_a_project_becomes_a_scenario(store: Store) -> None:
    version = await a_registered_version(store)
    bulk = await a_submitted_batch(store, jobs=10, batch_flop=3.6e13, order_key=1.0)
    host = await a_host_with_a_result(store, bulk.batch_id)
    await a_registered_host(store, last_rpc_at=later(NOW, 60.0))
    urgent = await a_submitted_batch(
        store, jobs=6, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 2 * DAY_S), batch_flop=2.4e13, order_key=2.0
    )
    await a_sent_instance(store, urgent.batch_id, host)
    await store.settings.set_setting("deadline.p_tight", 0.8, now=NOW, who="ops", why="")

    recent = await recent_project(as_postgres(store), VirtualClock(later(NOW, DAY_S)), most_hosts=10, days=3.0)

    scenario = recent.scenario
    known_s = later(NOW, DAY_S) - host.host.created_at
    assert recent.sample == RecentSample(later(NOW, DAY_S), 2, 2, 2, jobs=16, jobs_open=16, known_s=known_s)
    assert dict(scenario.settings) == {"deadline.p_tight": 0.8}
    assert scenario.horizon_s == 3 * DAY_S
    plans = scenario.batches
    assert [(plan.name, plan.jobs, plan.deadline_s) for plan in plans] == [
        (f"batch {bulk.batch_id}", 10, None),
        (f"batch {urgent.batch_id}", 6, Seconds(DAY_S)),
    ]
    assert [plan.fpops_est for plan in plans] == pytest.approx([3.6e12, 4e12])
    assert {plan.submitter for plan in plans} == {"default"}
    assert [(one.name, one.on_cpus, one.versions) for one in scenario.apps] == [("pi", True, (version,))]
    assert isinstance(scenario.population, MeasuredPopulation)
    known, newcomer = scenario.population.hosts
    assert {plan.name: (len(plan.held), plan.level, plan.queue) for plan in plans}[f"batch {urgent.batch_id}"] == (
        1,
        ServiceLevel.NORMAL,
        "normal",
    )
    [held] = plans[1].held
    assert (held.volunteer, held.age_s) == (0, DAY_S)
    assert [plan.logical_end_s for plan in plans] == [
        one.logical_end_at - later(NOW, DAY_S)
        for one in await store.views.batches_with([bulk.batch_id, urgent.batch_id])
    ]
    assert (known.ncpus, known.on_fraction, known.owner) == (4, 0.5, host.volunteer_id)
    assert known.stretch == pytest.approx(2.0)
    assert newcomer.stretch == pytest.approx(2.0)
    assert known.known is not None and known.known.host.host_id == host.host_id
    assert [(hav.app_version_id, hav.n_valid) for hav in known.known.havs] == [(version.app_version_id, 1)]


async def test_sample_of_hosts_is_simulated_with_share_of_jobs(store: Store) -> None:
    await a_registered_version(store)
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(8)]
    await a_submitted_batch(store, jobs=100)

    recent = await recent_project(as_postgres(store), VirtualClock(NOW), most_hosts=2, days=3.0)

    known_s = NOW - hosts[0].host.created_at
    assert recent.sample == RecentSample(NOW, 2, hosts_active=8, batches=1, jobs=25, jobs_open=100, known_s=known_s)


async def test_simulation_starts_with_the_rankings_of_the_project(store: Store) -> None:
    version = await a_registered_version(store)
    await a_registered_host(store, last_rpc_at=NOW)
    await a_submitted_batch(store, jobs=10)
    cuts = CutPoints(version.app_id, CPU, NOW, 30, (), (), retry_turnaround_s=Seconds(951.0))
    async with store.generations.new(now=NOW, full=True) as begun:
        assert begun is not None
        await begun.publish([cuts], HostStatisticsRun(1, full=True, started_at=NOW, seconds=Seconds(1.0)))

    recent = await recent_project(as_postgres(store), VirtualClock(NOW), most_hosts=2, days=3.0)

    assert [one.cuts for one in recent.scenario.programs] == [(cuts,)]


async def test_each_job_on_a_sampled_host_is_simulated(store: Store) -> None:
    """Each of four hosts has an instance of all four jobs; a sample of one host would otherwise have a single job."""
    await a_registered_version(store)
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(4)]
    batch = await a_submitted_batch(store, jobs=5, quorum=4)
    for place, candidate in enumerate((await waiting_of(store, batch.batch_id))[:16]):
        await a_sent_instance(store, batch.batch_id, hosts[place % 4], candidate)

    recent = await recent_project(as_postgres(store), VirtualClock(NOW), most_hosts=1, days=3.0)

    [plan] = recent.scenario.batches
    assert (plan.jobs, len(plan.held)) == (4, 4)


async def test_batches_that_no_host_can_run_are_not_simulated(store: Store) -> None:
    """They would never end, and decide the makespan of their kind."""
    await a_registered_version(store)
    await a_registered_host(store, last_rpc_at=NOW)
    bulk, rush = [await a_submitted_batch(store, jobs=10, qos=qos) for qos in (QoS.THROUGHPUT, QoS.AFAP)]
    group = RefusedByAll(rush.batch_id, 1, False, 10, 1, (("memory", 1),), NOW, False, active_hosts=1, judged_at=NOW)
    judged = {"unschedulable": [refused_as_json(group)], "able": []}
    await store.process_reports.note("a: background", "background", {"judged": judged}, now=NOW)

    found = await replay(
        as_postgres(store), VirtualClock(NOW), {"deadline.p_afap": 0.3}, seeds=[1], most_hosts=9, days=1.0
    )

    assert [plan.batch_id for plan in found.cases[0].scenario.batches] == [bulk.batch_id]
    assert found.asked["left_out"] == [{"batch_id": rush.batch_id, "why": LeftOut.UNRUNNABLE}]


async def test_batches_whose_jobs_fail_are_not_simulated(store: Store) -> None:
    """Simulated jobs are never given up: the figures would be those of a batch that works."""
    await a_registered_version(store)
    host = await a_registered_host(store, last_rpc_at=NOW)
    bulk = await a_submitted_batch(store, jobs=10)
    rush = await a_submitted_batch(store, job_class=a_job_class(max_errors=1), jobs=FAILED_JOBS + 1, qos=QoS.AFAP)
    for candidate in (await waiting_of(store, rush.batch_id))[:FAILED_JOBS]:
        sent = await a_sent_instance(store, rush.batch_id, host, candidate)
        await report(store, host, a_report(sent, to_state=InstanceState.FAILED))
    unsettled = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([settle(facts, {}, now=NOW, max_lost=9) for facts in unsettled])

    found = await replay(
        as_postgres(store), VirtualClock(NOW), {"deadline.p_afap": 0.3}, seeds=[1], most_hosts=9, days=1.0
    )
    cost = await replay_cost(as_postgres(store), VirtualClock(NOW))

    assert [plan.batch_id for plan in found.cases[0].scenario.batches] == [bulk.batch_id]
    assert found.asked["left_out"] == [{"batch_id": rush.batch_id, "why": LeftOut.FAILING}]
    assert cost.jobs_open == 10


async def test_batches_after_those_that_are_left_out_are_simulated(store: Store) -> None:
    await a_registered_version(store)
    first, second, *others = [await a_submitted_batch(store, jobs=1, order_key=float(place)) for place in range(5)]
    left_out = [first.batch_id, second.batch_id]
    known, clock = as_postgres(store), VirtualClock(NOW)
    catalogue = await fresh_catalogue(known.applications, clock)

    for most in (1, 2, 9):
        found = await simulated_batches(known, catalogue, left_out, most=most)
        assert [one.batch.batch_id for one in found] == [one.batch_id for one in others[:most]]
