"""A scenario on the production services ends, is repeatable, and the engine makes no decisions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace

import pytest

import simulator
from batch_estimator.service import Estimator
from domain.apps import CPU, App, AppVersion, PlanClass
from domain.batches import QoS
from domain.dispatch import Assignment
from domain.errors import InvalidInputError
from domain.ranking import CutPoints
from domain.settings import DeadlineRule
from domain.units import AppId, AppVersionId, Instant, Seconds
from feeder.array import JobArray
from feeder.refill import Refiller
from feeder.service import Feeder
from hoststats.service import HostStatistics, Timer
from jobs.ordering.ordering_pass import Orderer
from jobs.sweeper import Sweeper
from jobs.tails import Accelerator, TailCopier
from jobs.validator import Validator
from scheduler.selection import choose
from scheduler.service import RequestService
from simulator.engine import Engine
from simulator.ports import Outage, Program
from simulator.run import warnings_only
from simulator.services import create_project
from simulator.virtual_time import VirtualClock, run_without_threads
from tests.facts import states
from tests.memory import MemoryStore
from tests.unit.simulator.rig import LINUX, START, PlainScenario, PlainVolunteer, a_batch, no_more_tasks

HOUR_S = 3600.0


def simulated(
    scenario: PlainScenario, seed: int = 1, settings: Mapping[str, object] | None = None, *, sequence: bool = False
) -> Engine:
    """Return a finished run."""
    engine = Engine(
        scenario,
        seed,
        store=lambda clock: MemoryStore(),
        settings=settings or {},
        more_tasks=no_more_tasks,
        watch=lambda at: None,
        sequence=sequence,
    )
    with warnings_only():
        run_without_threads(engine.run())
    return engine


def sent(engine: Engine) -> list[Assignment]:
    assert engine.record.sequence is not None
    return engine.record.sequence


def test_a_run_ends_when_every_batch_has_ended() -> None:
    engine = simulated(PlainScenario(batches=[a_batch("rush", jobs=60), a_batch("bulk", qos="throughput", jobs=90)]))

    rush, bulk = engine.record.batches.values()
    assert (rush.name, rush.qos, len(rush.ended_at)) == ("rush", QoS.AFAP, 60)
    assert (bulk.name, bulk.qos, len(bulk.ended_at)) == ("bulk", QoS.THROUGHPUT, 90)
    assert engine.ended_at == max(*rush.ended_at, *bulk.ended_at)


def test_lost_and_failed_instances_are_made_up_for() -> None:
    patient = a_batch("rush", jobs=120, max_errors=20, max_instances=100)  # no job fails by bad luck
    engine = simulated(PlainScenario(batches=[patient], lost_fraction=0.2, error_fraction=0.1))

    (rush,) = engine.record.batches.values()
    assert rush.instances > rush.jobs
    assert rush.validated == 120


def test_a_run_is_given_up_at_the_horizon() -> None:
    engine = simulated(PlainScenario(batches=[a_batch("rush", jobs=5000)], horizon_s=Seconds(20 * HOUR_S)))

    assert engine.ended_at == START + 20 * HOUR_S
    assert engine.record.jobs_open > 0


def test_no_call_is_answered_during_an_outage() -> None:
    outage = Outage(Instant(START + 10 * HOUR_S), Instant(START + 30 * HOUR_S))
    engine = simulated(PlainScenario(batches=[a_batch("rush", jobs=300)], outages=[outage]), sequence=True)

    assert sum(one.unanswered_calls for one in engine.volunteers if isinstance(one, PlainVolunteer)) > 0
    assert not [one for one in sent(engine) if outage.start_at <= one.sent_at < outage.end_at]
    assert engine.record.jobs_open == 0


@pytest.mark.parametrize("rule", list(DeadlineRule))
def test_same_seed_repeats_dispatches_under_every_rule(rule: DeadlineRule) -> None:
    batches = [a_batch("rush", jobs=60), a_batch("bulk", qos="throughput", jobs=60)]
    scenario = PlainScenario(batches=batches, horizon_s=Seconds(86400.0))
    one, other = (sent(simulated(scenario, 3, {"deadline.rule": str(rule)}, sequence=True)) for _ in range(2))

    assert one == other
    assert len(one) >= 60  # by the proposal's rule no host qualifies for the urgent jobs at first


def test_another_seed_gives_other_dispatches() -> None:
    scenario = PlainScenario(batches=[a_batch("rush", jobs=60)])

    assert sent(simulated(scenario, 1, sequence=True)) != sent(simulated(scenario, 2, sequence=True))


def test_rules_differ_in_the_due_dates_they_give() -> None:
    scenario = PlainScenario(batches=[a_batch("rush", jobs=60)])

    fixed = sent(simulated(scenario, 1, {"deadline.rule": "fixed"}, sequence=True))
    muster = sent(simulated(scenario, 1, {"deadline.rule": "muster"}, sequence=True))

    assert {one.due_at - one.sent_at for one in fixed} == {7 * 86400.0}
    assert any(one.tight and one.due_at - one.sent_at < 7 * 86400.0 for one in muster)


def test_batches_are_ordered_by_what_their_submitters_have_used() -> None:
    batches = [
        a_batch("flood", qos="throughput", jobs=300, submitter="bob"),
        a_batch("more", qos="throughput", jobs=300, submitter="bob"),
        a_batch("ada", qos="throughput", jobs=100),
    ]
    scenario = PlainScenario(batches=batches, horizon_s=Seconds(3 * 86400.0))
    by_turn, by_share = (
        simulated(scenario, 1, {"ordering.policy": policy, "ordering.half_life_s": 86400.0})
        for policy in ("fifo", "multifactor")
    )

    unfair, fair = by_turn.record.shares.gap_fraction, by_share.record.shares.gap_fraction
    assert unfair is not None and fair is not None and fair < 0.8 * unfair
    assert isinstance(by_share.store, MemoryStore)
    usage = run_without_threads(by_share.store.ordering.view()).usage
    assert any(one.usage.amounts.flop > 0 for one in usage)


@pytest.mark.parametrize("slots", [0, 1])
def test_requests_go_by_the_slots_that_are_kept_for_big_jobs(slots: int) -> None:
    """No host here has eight processors."""
    version = AppVersion(AppVersionId(0), AppId(0), LINUX, 100, plan_class=PlanClass("wide", ncpus=8.0))
    scenario = PlainScenario(
        programs=(*PlainScenario().programs, Program(App(AppId(0), "wide"), (version,))),
        batches=[a_batch("bulk", qos="throughput"), a_batch("wide", qos="throughput", app="wide", ncpus=8)],
        horizon_s=Seconds(86400.0),
    )
    engine = simulated(scenario, 1, {"ordering.reservation_slots": slots})

    kept = engine.services.catalogue.catalogue().reserved.kept
    assert [engine.record.batches[batch_id].name for batch_id in kept] == ["wide"] * slots


def test_invalid_setting_is_refused_before_the_run() -> None:
    with states(InvalidInputError, "deadline.p_tight:", "0 to 1", "got 2"):
        simulated(PlainScenario(), settings={"deadline.p_tight": 2})


def test_the_services_of_a_run_are_those_of_production() -> None:
    services = simulated(PlainScenario(batches=[a_batch("rush", jobs=2)])).services

    assert [type(one) for one in (services.requests, services.feeder, services.feeder.array)] == [
        RequestService,
        Feeder,
        JobArray,
    ]
    assert type(services.feeder._refiller) is Refiller
    assert services.requests._giver._decide is choose
    assert type(services.jobs.validator) is Validator
    assert type(services.jobs.sweeper) is Sweeper
    assert type(services.orderer) is Orderer
    assert type(services.jobs.copier) is TailCopier
    assert type(services.jobs.accelerator) is Accelerator
    assert type(services.ranking.statistics) is HostStatistics
    assert type(services.ranking.timer) is Timer
    assert type(services.estimator) is Estimator


def test_every_duty_of_a_run_belongs_to_a_production_package() -> None:
    services = simulated(PlainScenario(batches=[a_batch("rush", jobs=2)])).services

    owners = {
        task.name: inspect.getmodule(type(task.run_once.__self__)).__name__.partition(".")[0]  # type: ignore[union-attr, attr-defined]
        for task in services.simulated_tasks()
        if task.name != "catalogue"
    }
    assert owners == {
        "sweeper": "jobs",
        "host statistics": "hoststats",
        "estimator": "batch_estimator",
        "ordering": "jobs",
        "reservations": "jobs",
        "host classes": "jobs",
        "tail copies": "jobs",
        "acceleration": "jobs",
    }
    assert simulator.__name__ not in owners.values()


def test_rankings_of_a_project_apply_at_the_start() -> None:
    [program] = PlainScenario().programs
    cuts = CutPoints(AppId(7), CPU, Instant(START - 1800.0), 30, (), (), retry_turnaround_s=Seconds(951.0))
    store, clock = MemoryStore(), VirtualClock(START)
    scenario = PlainScenario(programs=(replace(program, cuts=(cuts,)),))
    run_without_threads(create_project(store, scenario, [], {}, clock))

    catalogue = run_without_threads(store.applications.load_catalogue())
    assert dict(catalogue.cut_points) == {(AppId(1), CPU): replace(cuts, app_id=AppId(1))}
    [run] = run_without_threads(store.generations.runs(9))
    assert run.started_at == cuts.computed_at  # the next ranking is due an hour later
