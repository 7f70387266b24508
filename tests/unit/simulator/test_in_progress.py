"""Hosts begin with the jobs that they have in progress, and batches at their places in the order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from domain.apps import ATI, NVIDIA
from domain.batches import QoS
from domain.ordering import ServiceLevel
from domain.units import DAY_S, HOUR_S, Seconds
from simulator.client import SimulatedVolunteer
from simulator.engine import Engine
from simulator.population import MeasuredHost, MeasuredPopulation
from simulator.ports import HeldInstance
from simulator.run import warnings_only
from simulator.scenario import MONDAY, AppPlan, FileScenario
from simulator.submitters import BatchPlan
from simulator.traits import Gpu
from simulator.virtual_time import run_without_threads
from tests.memory import MemoryStore
from tests.unit.simulator.rig import LINUX, no_more_tasks

HOST = MeasuredHost(1, 1e9, 8e9, 5e10, LINUX, "Linux", owner=1, buffer_s=Seconds(HOUR_S))
TEN_HOURS = 3.6e13  # flop, for one of the hosts
START_S = 8 * HOUR_S
PACE = {"estimator.pause_s": DAY_S, "estimator.timer_s": DAY_S, "lifecycle.sweep_interval_s": 900.0}
LEARNING = BatchPlan("learning", "app", "ada", QoS.THROUGHPUT, 0.0, 2, 3.6e12, Seconds(DAY_S))
WAITING = BatchPlan("waiting", "app", "ada", QoS.THROUGHPUT, START_S, 2, TEN_HOURS, Seconds(7 * DAY_S))


def simulated(
    *plans: BatchPlan,
    hosts: tuple[MeasuredHost, ...] = (HOST, replace(HOST, owner=2)),
    settings: Mapping[str, object] = MappingProxyType({}),
    gpu_types: tuple[str, ...] = (),
) -> Engine:
    """Return a finished run of two hosts that compute a job of an hour each on the first day."""
    population = replace(MeasuredPopulation.of(hosts), size_sigma=0.0)
    scenario = FileScenario(
        "held",
        MONDAY,
        Seconds(6 * DAY_S),
        {**PACE, **settings},
        population,
        (AppPlan("app", gpu_types=gpu_types),),
        (),
        (),
    )
    engine = Engine(
        scenario.with_batches([LEARNING, *plans]),
        1,
        store=lambda _: MemoryStore(),
        settings={},
        more_tasks=no_more_tasks,
        watch=lambda _: None,
        sequence=True,
    )
    with warnings_only():
        run_without_threads(engine.run())
    return engine


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
