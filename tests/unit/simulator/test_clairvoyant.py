from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.apps import AppVersion, PlanClass, ProcessorType
from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.units import AppId, AppVersionId, Instant, Seconds
from simulator.availability import Availability
from simulator.clairvoyant import Bounds, ProcessorLane, batch_end_at, clairvoyant, nth_end_at
from simulator.engine import Engine
from simulator.metrics import makespan_s
from simulator.scenario import AppPlan, FileScenario, parse_scenario
from simulator.virtual_time import run_without_threads
from tests.memory import MemoryStore
from tests.unit.simulator.machines import DAY, HOUR, START, always_on, at, on_during
from tests.unit.simulator.rig import PlainScenario, no_more_tasks
from wire.messages import AppVersionElement, ResultElement, SchedulerReply, WorkunitElement


def a_lane(
    *, start_hours: float = 0.0, width: float = 1.0, speed: float = 1.0, availability: Availability | None = None
) -> ProcessorLane:
    """Return a lane on which jobs of 3600 flop take an hour at speed 1."""
    return ProcessorLane(availability or always_on(), at(start_hours), width, 1.0 / speed)


def hours(instant: float) -> float:
    return (instant - START) / HOUR


def test_job_ends_after_first_call_and_enough_on_time() -> None:
    lane = a_lane(start_hours=2.0, availability=on_during((0.0, 3.0), (10.0, 20.0)))

    assert hours(batch_end_at([lane], [2 * HOUR])) == 11.0


def test_more_jobs_than_processors_take_turns() -> None:
    lane = a_lane(width=2.0)

    assert hours(batch_end_at([lane], [HOUR] * 5)) == 2.5  # split without cost: 5 h of work on two processors


def test_jobs_go_to_the_host_that_ends_first() -> None:
    fast, slow = a_lane(speed=4.0), a_lane()

    assert hours(batch_end_at([fast, slow], [HOUR] * 4)) == pytest.approx(1.0)
    assert hours(batch_end_at([fast, slow], [HOUR] * 5)) == pytest.approx(1.0)


def test_the_largest_job_alone_may_be_what_takes_longest() -> None:
    assert hours(batch_end_at([a_lane()] * 9, [HOUR] * 8 + [7 * HOUR])) == 7.0


def test_a_quorum_needs_as_many_computers() -> None:
    assert hours(batch_end_at([a_lane(), a_lane(start_hours=5.0)], [HOUR], quorum=2)) == 6.0
    assert batch_end_at([a_lane()], [HOUR], quorum=2) == math.inf


def test_batch_without_hosts_never_ends() -> None:
    assert batch_end_at([], [HOUR]) == math.inf
    assert nth_end_at([a_lane(availability=on_during((0.0, 0.5)))], HOUR, 1, most_each=1) == math.inf


# ------------------------------------------------------------------ when a computer may ask


# ------------------------------------------------------------------ that it is a bound


def best_end(lanes: Sequence[ProcessorLane], sizes: Sequence[float]) -> float:
    """Find the best end by exhaustive search: each job on each processor, in every order."""
    processors = [lane for lane in lanes for _ in range(int(lane.width))]
    best = math.inf
    for places in itertools.product(range(len(processors)), repeat=len(sizes)):
        end_at = 0.0
        for place, lane in enumerate(processors):
            work = sum(size for size, chosen in zip(sizes, places, strict=True) if chosen == place)
            if work > 0.0:
                started_s = lane.availability.worked_s(lane.start_at)
                end_at = max(end_at, lane.availability.when(started_s + work * lane.s_per_flop))
        best = min(best, end_at)
    return best


lanes = st.lists(
    st.builds(
        lambda start, width, speed, off, on: a_lane(
            start_hours=start,
            width=width,
            speed=speed,
            availability=on_during((0.0, off), (off + on, 1e5)),
        ),
        st.floats(0.0, 9.0),
        st.sampled_from([1.0, 2.0]),
        st.floats(0.2, 5.0),
        st.floats(0.1, 5.0),
        st.floats(0.1, 9.0),
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=60)
@given(lanes, st.lists(st.floats(0.1, 9.0), min_size=1, max_size=4))
def test_no_schedule_of_a_few_jobs_is_faster(some: list[ProcessorLane], job_hours: list[float]) -> None:
    sizes = sorted(one * HOUR for one in job_hours)

    assert batch_end_at(some, sizes) <= best_end(some, sizes) + 1e-3


@settings(max_examples=40)
@given(lanes, st.integers(1, 4))
def test_bound_is_exact_for_equal_jobs_on_single_processors(some: list[ProcessorLane], jobs: int) -> None:
    single = [ProcessorLane(lane.availability, lane.start_at, 1.0, lane.s_per_flop) for lane in some]

    assert batch_end_at(single, [HOUR] * jobs) == pytest.approx(best_end(single, [HOUR] * jobs), abs=1e-3)


def a_scenario(
    *, hosts: int = 12, jobs: int = 15, at_hours: float = 0.0, qos: str = "afap", **more: object
) -> FileScenario:
    return parse_scenario(
        {
            "days": 12,
            "delay_bound_days": 0.5,
            "population": {"hosts": hosts, "platforms": {"linux": 1.0}, **more},
            "settings": {"lifecycle.sweep_interval_s": 600.0, "lifecycle.validate_interval_s": 60.0},
            "batch": [{"name": "b", "qos": qos, "jobs": jobs, "fpops_est": 2e13, "at_hours": at_hours}],
        },
        folder=Path(),
    )


SOME_TIME = (HOUR, 8 * HOUR, 9 * DAY)
NO_HURRY = (1e4 * DAY,)


def dispatched_end_s(
    scenario: FileScenario, seed: int, draw: random.Random, due_after_s: Sequence[float] = SOME_TIME
) -> float:
    """Return the batch's makespan if calling hosts get jobs, and deadlines, as drawn."""
    plan = scenario.batches[0]
    posted_at = scenario.starts_at + plan.at_s
    volunteers = scenario.volunteers(seed)
    open_jobs, serial, now = set(range(plan.jobs)), itertools.count(), scenario.starts_at
    while open_jobs:
        now, one = min(
            ((one.next_event(now), one) for one in volunteers), key=lambda entry: (entry[0], volunteers.index(entry[1]))
        )
        assert now < math.inf
        one.advance(now)
        request = one.request(now)
        if request is None:
            continue
        open_jobs -= {int(result.name.split("_")[1]) for result in request.results if result.exit_status == 0}
        wants = request.cpu_req_s > 0.0 and now >= posted_at
        chosen = draw.sample(sorted(open_jobs), min(len(open_jobs), draw.randint(0, 6))) if wants else []
        names = [f"b_{job}_{next(serial)}" for job in chosen]
        one.receive(
            SchedulerReply(
                "",
                scenario_delay(draw),
                acks=tuple(result.name for result in request.results),
                app_versions=(AppVersionElement("app", 100, "linux"),),
                workunits=tuple(
                    WorkunitElement(f"b_{job}", "app", plan.fpops_est, 1e18, 1e8, 1e8, command_line=f"b {job}")
                    for job in chosen
                ),
                results=tuple(
                    ResultElement(name, f"b_{job}", Instant(now + draw.choice(due_after_s)), "linux", 100)
                    for name, job in zip(names, chosen, strict=True)
                ),
            ),
            now,
        )
    return now - posted_at


def scenario_delay(draw: random.Random) -> Seconds:
    return Seconds(draw.choice((60.0, 300.0, 600.0, DAY)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 5.3, 31.0]), st.sampled_from([0.25, 0.5, 1.0]))
def test_no_dispatcher_beats_the_bound(seed: int, at_hours: float, share: float) -> None:
    scenario = a_scenario(at_hours=at_hours, share_fraction=share, loss_fraction=0.0, error_fraction=0.0)

    assert clairvoyant(scenario, seed).least_s["b"] <= dispatched_end_s(scenario, seed, random.Random(seed)) + 1e-3


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 5.3, 31.0]), st.sampled_from([0.1, 0.5, 0.75]))
def test_no_run_without_deadline_mode_beats_the_share_bound(seed: int, at_hours: float, share: float) -> None:
    scenario = a_scenario(at_hours=at_hours, share_fraction=share, loss_fraction=0.0, error_fraction=0.0)
    bounds = clairvoyant(scenario, seed)

    assert bounds.least_s["b"] <= bounds.in_share_s["b"]
    assert bounds.in_share_s["b"] <= dispatched_end_s(scenario, seed, random.Random(seed), NO_HURRY) + 1e-3


def test_in_its_share_a_job_for_all_processors_takes_longer() -> None:
    both = a_lane(width=2.0, speed=2.0)  # two processors, one job on each

    assert hours(batch_end_at([replace(both, share=0.5).in_share()], [HOUR] * 2)) == 1.0
    assert hours(batch_end_at([replace(both, share=0.25).in_share()], [HOUR])) == 1.0


@pytest.mark.parametrize("rule", ["muster", "proposal", "fixed", "accelerated"])
def test_no_rule_is_faster(rule: str) -> None:
    scenario = replace(a_scenario(jobs=20, at_hours=3.0), horizon_s=Seconds(2 * DAY))
    engine = Engine(
        scenario,
        seed=1,
        store=lambda _clock: MemoryStore(),
        settings={"deadline.rule": rule},
        more_tasks=no_more_tasks,
        watch=lambda _at: None,
    )
    run_without_threads(engine.run())
    (batch,) = engine.record.batches.values()

    assert clairvoyant(scenario, 1).least_s["b"] <= makespan_s(batch, engine.ended_at)


def test_who_never_answers_is_of_no_use_to_it() -> None:
    all_hosts = a_scenario(jobs=40)
    half = a_scenario(jobs=40, silent_hosts_fraction=0.5)

    assert clairvoyant(half, 1).least_s["b"] > clairvoyant(all_hosts, 1).least_s["b"]


def test_infeasible_batch_has_no_bound() -> None:
    assert clairvoyant(a_scenario(hosts=1, mean_stay_days=0.001, replaced=False), 1) == Bounds({}, {})


def test_a_scenario_without_a_population_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="a scenario from a file"):
        clairvoyant(PlainScenario(), 1)


LINUX, WINDOWS = "x86_64-pc-linux-gnu", "windows_x86_64"


def with_versions(*versions: tuple[str, PlanClass]) -> FileScenario:
    """Return 40 jobs of an app with only these versions."""
    made = tuple(AppVersion(AppVersionId(0), AppId(0), platform, 100, plan) for platform, plan in versions)
    scenario = a_scenario(jobs=40, platforms={LINUX: 0.5, WINDOWS: 0.5}, gpus=[{"share": 1.0, "median_tflops": 0.5}])
    return replace(scenario, apps=(AppPlan("app", versions=made),))


def bound_of(*versions: tuple[str, PlanClass]) -> float:
    return clairvoyant(with_versions(*versions), 1).least_s.get("b", math.inf)


def test_who_has_no_version_is_left_out() -> None:
    plain, wide = PlanClass(""), PlanClass("wide", ncpus=64.0)

    assert bound_of((LINUX, plain), (WINDOWS, plain)) < bound_of((LINUX, plain)) < math.inf
    assert bound_of(("aarch64", plain)) == bound_of((LINUX, wide), (WINDOWS, wide)) == math.inf


def test_versions_for_several_processors_and_for_gpus_count() -> None:
    plain = [(LINUX, PlanClass("")), (WINDOWS, PlanClass(""))]
    pair = [(LINUX, PlanClass("mt2", ncpus=2.0)), (WINDOWS, PlanClass("mt2", ncpus=2.0))]
    gpu = [(name, PlanClass("gpu", 0.1, ProcessorType("NVIDIA"))) for name in (LINUX, WINDOWS)]
    halves = [(name, PlanClass("gpu", 0.1, ProcessorType("NVIDIA"), gpu_count=0.5)) for name in (LINUX, WINDOWS)]

    assert bound_of(*plain, *pair) <= min(bound_of(*plain), bound_of(*pair))  # a job may end in half the time
    assert bound_of(*plain, *gpu) < bound_of(*plain)
    assert bound_of(*gpu) < math.inf
    assert bound_of(*gpu, *halves) <= min(bound_of(*gpu), bound_of(*halves))


def test_the_kind_of_batch_does_not_matter() -> None:
    bounds = [clairvoyant(a_scenario(qos=qos), 1).least_s["b"] for qos in (QoS.AFAP, QoS.LONG_DEADLINE, QoS.THROUGHPUT)]

    assert len(set(bounds)) == 1
