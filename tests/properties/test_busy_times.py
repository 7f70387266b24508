"""Properties of busy times for any queued jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.apps import NVIDIA, PlanClass
from domain.hosts import Coprocessor
from domain.units import Seconds
from scheduler.busy import QueuedWork, Timeline, busy_of
from tests.builders import a_host
from tests.unit.scheduler.arrays import a_want

whole_jobs = st.tuples(st.integers(1, 4), st.floats(0.0, 1e5))
shares = st.sampled_from([0.1, 0.2, 0.25, 0.33, 0.5, 0.75, 1.0, 2.0])
plans = st.one_of(
    st.builds(PlanClass, st.just("cpu"), ncpus=st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0])),
    st.builds(PlanClass, st.just("gpu"), ncpus=st.sampled_from([0.1, 1.0]), gpu_type=st.just(NVIDIA), gpu_count=shares),
)
works = st.lists(st.builds(QueuedWork, plans, st.floats(0.0, 1e5), st.floats(-1e5, 0.0), st.booleans()), max_size=12)


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=8), st.lists(whole_jobs, max_size=12))
def test_jobs_start_when_processors_are_free(free_s: list[float], jobs: list[tuple[int, float]]) -> None:
    line, naive = Timeline.of(free_s), sorted(free_s)
    for count, runtime_s in jobs:
        used = min(count, len(naive))
        assert line.start_s(count) == naive[used - 1]
        naive = sorted([naive[used - 1] + runtime_s] * used + naive[used:])
        line = line.after(count, runtime_s)
    assert [parts[-1] for parts in line.instances] == naive


@given(st.integers(1, 4), st.lists(st.tuples(shares, st.floats(0.0, 1e5)), max_size=12))
def test_shared_devices_stay_in_order_and_only_get_busier(count: int, jobs: list[tuple[float, float]]) -> None:
    line = Timeline.of([0.0] * count)
    for usage, runtime_s in jobs:
        before = {share: line.start_s(share) for share in (0.25, 0.5, 1.0)}
        line = line.after(usage, runtime_s)
        assert len(line.instances) == count
        assert all(list(parts) == sorted(parts) for parts in line.instances)
        assert [parts[-1] for parts in line.instances] == sorted(parts[-1] for parts in line.instances)
        assert all(line.start_s(share) >= start_s for share, start_s in before.items())


@given(works, st.integers(1, 4), st.floats(0.0, 4.0), st.floats(0.0, 1e4), plans, st.floats(0.0, 1e5), st.booleans())
def test_the_queue_is_never_shorter_than_endangered_work(
    work: list[QueuedWork], ncpus: int, idle: float, delay_s: float, plan: PlanClass, runtime_s: float, tight: bool
) -> None:
    host = a_host(ncpus=ncpus, coprocessors=(Coprocessor(NVIDIA, 2),))
    want = a_want(count=ncpus, req_instances=idle, estimated_delay_s=Seconds(delay_s))
    busy = busy_of((a_want(NVIDIA, count=2), want), host, work)
    assert 0.0 <= busy.start_s(plan) <= busy.queue_s(plan)
    after = busy.with_job(plan, runtime_s, tight=tight)
    assert after.start_s(plan) >= busy.start_s(plan)
    assert after.queue_s(plan) >= busy.queue_s(plan)
    if not tight:
        assert after.start == busy.start
