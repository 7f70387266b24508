"""Hosts begin with the jobs that they have in progress, and batches at their places in the order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from domain.apps import ATI, NVIDIA, AppVersion, PlanClass
from domain.batches import QoS
from domain.dispatch import Assignment, SentJob
from domain.hosts import DecayedSums, Host, HostAppVersion
from domain.insight import RecentHost
from domain.ordering import ServiceLevel
from domain.units import DAY_S, HOUR_S, AppId, AppVersionId, HostId, Instant, Seconds, VolunteerId
from simulator.client import SimulatedVolunteer
from simulator.engine import Engine
from simulator.population import MeasuredHost, MeasuredPopulation
from simulator.ports import HeldInstance
from simulator.run import warnings_only
from simulator.scenario import MONDAY, AppPlan, FileScenario
from simulator.submitters import BatchPlan
from simulator.traits import Gpu
from simulator.virtual_time import run_without_threads
from store.memory.ledger import MemoryLedger
from tests.memory import MemoryStore
from tests.unit.simulator.rig import LINUX, no_more_tasks

HOST = MeasuredHost(1, 1e9, 8e9, 5e10, LINUX, "Linux", owner=1, buffer_s=Seconds(HOUR_S))
TEN_HOURS = 3.6e13  # flop, for one of the hosts
START_S = 8 * HOUR_S
VERSION = AppVersion(AppVersionId(77), AppId(7), LINUX, 100, PlanClass(""))
PACE = {"estimator.pause_s": DAY_S, "estimator.timer_s": DAY_S, "lifecycle.sweep_interval_s": 900.0}
EARLIER = BatchPlan("earlier", "app", "ada", QoS.THROUGHPUT, 0.0, 2, 3.6e12, Seconds(DAY_S))
WAITING = BatchPlan("waiting", "app", "ada", QoS.THROUGHPUT, START_S, 2, TEN_HOURS, Seconds(7 * DAY_S))


def simulated(
    *plans: BatchPlan,
    hosts: tuple[MeasuredHost, ...] = (HOST, replace(HOST, owner=2)),
    settings: Mapping[str, object] = MappingProxyType({}),
    gpu_types: tuple[str, ...] = (),
    horizon_s: float = 6 * DAY_S,
    store: MemoryStore | None = None,
    earlier: tuple[BatchPlan, ...] = (EARLIER,),
) -> Engine:
    """Return a finished run of two hosts that compute a job of an hour each on the first day."""
    population = replace(MeasuredPopulation.of(hosts), size_sigma=0.0)
    scenario = FileScenario(
        "held",
        MONDAY,
        Seconds(horizon_s),
        {**PACE, **settings},
        population,
        (AppPlan("app", gpu_types=gpu_types, versions=() if gpu_types else (VERSION,)),),
        (),
        (),
    )
    engine = Engine(
        scenario.with_batches([*earlier, *plans]),
        1,
        store=lambda _: store or MemoryStore(),
        settings={},
        more_tasks=no_more_tasks,
        watch=lambda _: None,
        sequence=True,
    )
    with warnings_only():
        run_without_threads(engine.run())
    return engine


def a_known_host(owner: int) -> MeasuredHost:
    """Return a host with ten results of an hour each, and seven instances sent today."""
    day, record = int(MONDAY // DAY_S), DecayedSums(10.0, 1e-8, at=MONDAY)
    hav = HostAppVersion(HostId(5), VERSION.app_version_id, n_valid=10, day=day, sent_today=7, speed=record)
    host = Host(HostId(5), VolunteerId(9), rpc_seqno=40, created_at=Instant(MONDAY - 30 * DAY_S), platforms=(LINUX,))
    known = RecentHost(replace(host, last_rpc_at=Instant(MONDAY - 60.0)), Seconds(600.0), (hav,))
    return replace(HOST, owner=owner, known=known)


def started(plan: BatchPlan, *, hosts: tuple[MeasuredHost, ...], store: MemoryStore | None = None) -> Engine:
    """Return a run up to the hand-out of the batch's instances in progress."""
    return simulated(plan, hosts=hosts, horizon_s=0.0, store=store, earlier=())


def held(volunteer: int, done_fraction: float, *, due_s: float = 5 * DAY_S) -> HeldInstance:
    return HeldInstance(volunteer, Seconds(9 * HOUR_S), Seconds(due_s), done_fraction)


def host_ids(engine: Engine) -> list[int]:
    return [volunteer.host_id for volunteer in engine.volunteers if isinstance(volunteer, SimulatedVolunteer)]


def ends_h(engine: Engine, name: str) -> list[float]:
    """Return when the jobs of a batch ended, in hours after its submission."""
    [batch] = [one for one in engine.record.batches.values() if one.name == name]
    return [(at - batch.submitted_at) / HOUR_S for at in batch.ended_at]


def test_job_in_progress_ends_after_its_remaining_time() -> None:
    engine = simulated(replace(WAITING, held=(held(0, 0.9), held(1, 0.5))))

    assert ends_h(engine, "waiting") == pytest.approx([1.0, 5.0], abs=1.2)  # a result may be reported an hour later
    given = [one for one in (engine.record.sequence or []) if one.batch_id == 2]
    assert [one.sent_at for one in given] == 2 * [MONDAY + START_S]


def test_job_in_progress_is_not_sent_again() -> None:
    engine = simulated(replace(WAITING, held=(held(0, 0.9), held(1, 0.5))))
    batch = engine.record.batches[max(engine.record.batches)]

    assert (batch.instances, batch.validated) == (2, 2)


def test_new_job_waits_for_the_one_in_progress() -> None:
    engine = simulated(replace(WAITING, held=(held(0, 0.0),)), hosts=(HOST,))

    assert ends_h(engine, "waiting") == pytest.approx([10.0, 20.0], abs=2.2)


def test_instance_of_an_unknown_host_stays_unsent() -> None:
    absent = replace(HOST, owner=2, on_fraction=0.05, platform="exotic")
    engine = simulated(replace(WAITING, held=(held(1, 0.9),)), hosts=(HOST, absent))

    assert ends_h(engine, "waiting") == pytest.approx([10.0, 20.0], abs=4.0)


def test_instance_for_a_gpu_that_its_host_lacks_stays_unsent() -> None:
    card = Gpu(NVIDIA, 1, 1e12, 4e9, 50_000)
    on_ati = replace(held(0, 0.9), gpu_type=ATI)
    engine = simulated(
        replace(WAITING, fpops_est=3.6e12, held=(on_ati, held(1, 0.5))),
        hosts=(replace(HOST, gpu=card), replace(HOST, owner=2)),
        gpu_types=(NVIDIA, ATI),
    )

    first, *_ = [one for one in engine.record.sequence or () if one.batch_id == 2]
    assert first.host_id == host_ids(engine)[1]
    assert len(ends_h(engine, "waiting")) == 2


def test_jobs_of_a_quorum_stay_with_their_hosts() -> None:
    hosts = tuple(replace(HOST, owner=owner, ncpus=4) for owner in (1, 2))
    on_both = (*(3 * [held(0, 0.5)]), *(3 * [held(1, 0.5)]))
    engine = simulated(replace(WAITING, jobs=3, quorum=2, held=on_both), hosts=hosts)

    one, other = host_ids(engine)
    given = [row for row in engine.record.sequence or () if row.batch_id == 2]
    assert [row.host_id for row in given] == [*(3 * [one]), *(3 * [other])]
    assert len({(row.host_id, row.job_id) for row in given}) == 6


def test_refused_instance_is_replaced_by_the_next() -> None:
    """Of three jobs with a quorum of 2, the second host has all, one of them together with the first host."""
    hosts = tuple(replace(HOST, owner=owner, ncpus=4) for owner in (1, 2))
    unequal = (held(1, 0.5), held(1, 0.5), held(0, 0.5), held(1, 0.5))
    engine = simulated(replace(WAITING, jobs=3, quorum=2, held=unequal), hosts=hosts)

    one, other = host_ids(engine)
    given = [row for row in engine.record.sequence or () if row.batch_id == 2][:4]
    assert [row.host_id for row in given] == [other, other, one, other]
    assert len({row.job_id for row in given if row.host_id == other}) == 3


def test_batches_keep_their_places() -> None:
    big = replace(WAITING, name="big", jobs=5, fpops_est=3.6e12, logical_end_s=-800.0)
    small = replace(big, name="small", jobs=1, at_s=START_S + 1.0, logical_end_s=-900.0)
    placed = simulated(big, small)
    new = simulated(*(replace(one, logical_end_s=None) for one in (big, small)))

    assert [ends_h(one, "small")[0] < max(ends_h(one, "big")) for one in (placed, new)] == [True, False]


def test_level_of_a_batch_decides_first() -> None:
    first = replace(WAITING, name="first", jobs=5, fpops_est=3.6e12, logical_end_s=-900.0)
    expedite = replace(first, name="expedite", at_s=START_S + 1.0, level=ServiceLevel.EXPEDITE, logical_end_s=0.0)
    engine = simulated(first, expedite)

    assert max(ends_h(engine, "expedite")) < max(ends_h(engine, "first"))


def test_label_sends_work_of_a_bound_queue_to_its_hosts() -> None:
    settings = {"ordering.queues": "normal=1/1/1 lab=1/1/1", "ordering.queue_hosts": "lab:label=lab"}
    hosts = (HOST, replace(HOST, owner=2, labels=("lab",)))
    engine = simulated(replace(WAITING, fpops_est=3.6e12, queue="lab"), hosts=hosts, settings=settings)

    labelled = engine.volunteers[1]
    assert isinstance(labelled, SimulatedVolunteer)
    assert [one.host_id for one in engine.record.sequence or () if one.batch_id == 2] == 2 * [labelled.host_id]


class CountingLedger(MemoryLedger):
    attempts = 0

    async def copy_assignment(self, assignment: Assignment) -> SentJob | None:
        self.attempts += 1
        return await super().copy_assignment(assignment)


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.ledger: CountingLedger = CountingLedger(self._registry, self._work, self.trickles)


def test_refused_instance_is_not_offered_to_its_host_again() -> None:
    """The first host has 300 of 600 instances; it is refused 150 of them, and must not be refused them 150 times."""
    hosts = (a_known_host(1), a_known_host(2))
    in_turn = (*(150 * [held(0, 0.5)]), *(150 * [held(1, 0.5)]), *(150 * [held(0, 0.5)]))
    plan = replace(WAITING, at_s=0.0, jobs=300, quorum=2, held=in_turn)
    engine = started(plan, hosts=hosts, store=CountingStore())

    assert [len(engine.record.sequence or ()), len(in_turn)] == [450, 450]
    ledger = engine.store.ledger
    assert isinstance(ledger, CountingLedger)
    assert ledger.attempts <= 2 * 450


def test_known_host_starts_with_its_record() -> None:
    """Its instances in progress are already part of what its quota counts."""
    plan = replace(WAITING, at_s=0.0, held=(held(0, 0.5), held(0, 0.5)))
    engine = started(plan, hosts=(a_known_host(1),))

    sample = run_without_threads(engine.store.insight.sampled_hosts(9, active_since=Instant(0.0), most_held=9))  # type: ignore[union-attr]
    [one] = sample.hosts
    assert (one.host.created_at, one.rpc_interval_s, len(one.held)) == (MONDAY - 30 * DAY_S, 600.0, 2)
    assert [(hav.n_valid, hav.sent_today) for hav in one.havs] == [(10, 7)]


def test_known_host_keeps_its_id() -> None:
    """Its client starts to count requests at 0, although the host had sent more."""
    engine = simulated(replace(WAITING, at_s=0.0), hosts=(a_known_host(1),))

    assert host_ids(engine) == [1]
    assert {one.host_id for one in engine.record.sequence or ()} == {1}
