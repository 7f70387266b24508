"""What holds of every choice, whatever the host wants and the array holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.apps import CPU, NVIDIA
from domain.batches import QoS
from domain.hosts import Coprocessor, DecayedSums
from domain.units import AppVersionId, FlopPerSecond, HostId, Instant, Seconds
from scheduler.asking import Asking
from scheduler.choice import Choice
from scheduler.dispatch import choose
from tests.builders import NOW, a_hav, a_held, a_host, a_plan_class, a_ready, a_volunteer, an_app_version
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking, some_cuts

CUDA = an_app_version(app_version_id=2, plan_class=a_plan_class(name="cuda", ncpus=1.0, gpu_type=NVIDIA))
GPU = Coprocessor(NVIDIA, 1, FlopPerSecond(1e11))


@st.composite
def groups(draw: st.DrawFn, number: int) -> ListGroup:
    urgent = draw(st.booleans())
    slots = [
        a_ready(
            instance_id=number * 100 + i,
            job_id=number * 100 + draw(st.integers(0, 3)),
            retries=draw(st.integers(0, 2)) if urgent else 0,
            sibling_returned=urgent,
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    changes: dict[str, Any] = {
        "qos": draw(st.sampled_from(QoS)),
        "deadline_at": Instant(NOW + draw(st.floats(-1e5, 1e6))),
        "memory_bytes": draw(st.sampled_from([1e8, 9e9])),
        "disk_bytes": draw(st.sampled_from([1e8, 2e9])),
        "delay_bound_s": draw(st.sampled_from([3600.0, 86_400.0, 864_000.0])),
        "fpops_est_flop": draw(st.sampled_from([1e11, 3.6e12, 1e14])),
    }
    return a_group(number, ready=slots, **changes)


@st.composite
def arrays(draw: st.DrawFn) -> ListArray:
    held = [draw(groups(number)) for number in range(1, draw(st.integers(1, 6)) + 1)]
    hosts = {group.ready[0].job_id: {HostId(1)} for group in held if draw(st.booleans())}
    return ListArray(held, hosts)


@st.composite
def askings(draw: st.DrawFn) -> Asking:
    named: dict[str, Any] = {
        "scheduler__jobs_per_request": draw(st.integers(1, 3)),
        "scheduler__in_progress_per_cpu": draw(st.integers(1, 4)),
        "scheduler__daily_quota_start": draw(st.integers(1, 5)),
        "scheduler__newcomer_fraction": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "scheduler__urgent_share_fraction": draw(st.sampled_from([0.0, 0.5, 1.0])),
    }
    cuts = draw(st.sampled_from([(), (some_cuts(), some_cuts(kind=NVIDIA))]))
    relaxed = DecayedSums(1e6, 1e6 * draw(st.floats(0.0, 1.0)), 1e6, NOW)
    row = a_hav(consecutive_valid=draw(st.integers(0, 12)), relaxed=relaxed)
    havs = draw(st.sampled_from([{}, {AppVersionId(1): row}]))
    return an_asking(
        host=a_host(ncpus=2, coprocessors=(GPU,)),
        volunteer=a_volunteer(max_jobs=draw(st.integers(0, 3))),
        catalogue=a_catalogue(an_app_version(), CUDA, cuts=cuts, **named),
        wants=(
            a_want(NVIDIA, count=1, req_s=Seconds(draw(st.floats(0.0, 1e5)))),
            a_want(CPU, req_s=Seconds(draw(st.floats(1.0, 1e5))), req_instances=draw(st.floats(0.0, 2.0))),
        ),
        disk_bytes=5e9,
        havs=havs,
        held=tuple(a_held(instance_id=9000 + i, job_id=9000 + i) for i in range(draw(st.integers(0, 3)))),
        seed=draw(st.integers(0, 9)),
    )


def bound_s(array: ListArray) -> dict[int, float]:
    return {group.batch.batch_id: group.job_class.delay_bound_s for group in array.held}


def fits_limits(asking: Asking, choice: Choice) -> None:
    limits = asking.catalogue.settings.scheduler
    sent = Counter(one.version.processor_type for one in choice.chosen)
    assert sent[CPU] <= limits.jobs_per_request * 2
    assert sent[NVIDIA] <= limits.jobs_per_request
    if sent[CPU]:
        assert sent[CPU] + len(asking.held) <= limits.in_progress_per_cpu * 2
    if asking.volunteer.max_jobs and choice.chosen:
        assert len(choice.chosen) + len(asking.held) <= asking.volunteer.max_jobs
    for version_id, count in Counter(one.version.app_version_id for one in choice.chosen).items():
        per_day = limits.daily_quota_start
        assert count <= per_day * (2 if version_id == 1 else 1)
    assert sum(one.job_class.disk_bytes for one in choice.chosen) <= asking.disk_bytes


@settings(max_examples=150)
@given(askings(), arrays())
def test_a_choice_keeps_every_limit(asking: Asking, array: ListArray) -> None:
    fits_limits(asking, choose(asking, array))


@settings(max_examples=150)
@given(askings(), arrays())
def test_no_host_gets_two_instances_of_a_job_and_no_slot_goes_twice(asking: Asking, array: ListArray) -> None:
    had = {job_id for job_id, hosts in array.hosts_of.items() if HostId(1) in hosts}
    choice = choose(asking, array)
    jobs = [one.assignment.job_id for one in choice.chosen]
    assert len(set(jobs)) == len(jobs)
    assert not had & set(jobs)
    assert Counter(one.slot for one in choice.chosen) == Counter(array.taken)


@settings(max_examples=150)
@given(askings(), arrays())
def test_every_due_date_lies_ahead_and_within_the_delay_bound(asking: Asking, array: ListArray) -> None:
    bounds = bound_s(array)
    for one in choose(asking, array).chosen:
        assert NOW + one.assignment.est_runtime_s <= one.assignment.due_at
        assert one.assignment.due_at <= NOW + bounds[one.assignment.batch_id]
        assert one.assignment.timeout_at > one.assignment.due_at


@settings(max_examples=150)
@given(askings(), arrays())
def test_everything_has_a_reason(asking: Asking, array: ListArray) -> None:
    choice = choose(asking, array)
    assert all(one.assignment.because for one in choice.chosen)
    assert all(one.refusal.detail for one in choice.refused)
    if not choice.chosen and asking.wants[1].req_s > 0:
        assert choice.refused


@settings(max_examples=150)
@given(askings(), arrays())
def test_a_choice_is_repeated_from_its_seed(asking: Asking, array: ListArray) -> None:
    again = ListArray(
        [replace(group, ready=list(group.ready)) for group in array.held],
        {job: set(hosts) for job, hosts in array.hosts_of.items()},
    )
    first, second = choose(asking, array), choose(asking, again)
    assert [one.assignment for one in first.chosen] == [one.assignment for one in second.chosen]
    assert first.refused == second.refused


@settings(max_examples=100)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 12))
def test_ungated_jobs_go_out_in_the_order_of_the_array(sizes: list[int], wanted: int) -> None:
    array = ListArray([a_group(number + 1, size) for number, size in enumerate(sizes)])
    in_order = [slot.instance_id for group in array.groups() for slot in group.slots()]
    asking = an_asking(wants=(a_want(req_s=Seconds(wanted * 3600.0 - 1.0)),))
    given = [one.assignment.instance_id for one in choose(asking, array).chosen]
    assert given == in_order[:wanted]
