"""Dry runs on job arrays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from administration.explain.dry_run import (
    Untouched,
    all_answers,
    array_of,
    assumed_context,
    assumed_request,
    sample_of,
)
from administration.explain.host import refused_classes
from domain.apps import CPU, NVIDIA
from domain.batches import QoS
from domain.dispatch import RequestKey, RequestView
from domain.hosts import Coprocessor
from domain.insight import Caller
from domain.jobs import Candidate
from domain.refusals import RefusalCode
from domain.units import FlopPerSecond, HostId, InstanceId, JobId, Seconds, VolunteerId
from feeder.array import JobArray
from scheduler.context import SchedulingContext
from scheduler.selection import choose
from scheduler.trace import bests_of, traced
from tests.builders import NOW, a_batch, a_held, a_host, a_job_class, a_ready, a_volunteer
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock
from tests.unit.scheduler.arrays import a_catalogue, a_want, an_asking
from tests.unit.scheduler.project import a_project


def an_array(retries: list[int], siblings: list[int], qos: QoS = QoS.AFAP) -> JobArray:
    """Return instances of one batch; `siblings` are the hosts that had each one's job."""
    candidates = [
        Candidate(
            a_ready(instance_id=InstanceId(i), job_id=JobId(i), retries=tried),
            (HostId(host),) if host else (),
            (VolunteerId(host),) if host else (),
        )
        for i, (tried, host) in enumerate(zip(retries, siblings, strict=True), 1)
    ]
    job_class = a_job_class()
    return array_of(candidates, a_batch(qos=qos), {job_class.job_class_id: job_class}, a_catalogue(), HandClock())


@given(
    slots=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 0, 1, 2])), max_size=12),
    req_s=st.sampled_from([1.0, 3e4, 1e6]),
    qos=st.sampled_from([QoS.AFAP, QoS.THROUGHPUT]),
)
def test_dry_run_decides_like_a_request_and_takes_nothing(slots: list[tuple[int, int]], req_s: float, qos: QoS) -> None:
    retries, siblings = [tried for tried, _ in slots], [host for _, host in slots]
    context: SchedulingContext = an_asking(wants=(a_want(req_s=Seconds(req_s)),))
    array = an_array(retries, siblings, qos)
    before = [list(group.slots()) for group in array.groups()]

    on_views = [choose(context, Untouched(array)) for _ in range(2)]

    assert [list(group.slots()) for group in array.groups()] == before
    taken = choose(context, an_array(retries, siblings, qos))
    for found in on_views:
        assert found.chosen == taken.chosen
        assert found.counts() == taken.counts()


def test_taken_slot_is_hidden_until_given_back() -> None:
    view = Untouched(an_array([0], [0]))
    [slot] = view.groups()[0].slots()

    view.take(slot, HostId(1), VolunteerId(1))
    assert list(view.groups()) == []

    view.give_back(slot)
    assert list(view.groups()[0].slots()) == [slot]


async def test_search_finds_no_more_work() -> None:
    assert await Untouched(an_array([0], [0])).search([], 9) is False


def jobs_for(ncpus: int, flop_per_s: float) -> int:
    """Return how many of ten jobs a host with `ncpus` idle CPUs would be sent."""
    one = an_asking()
    host = replace(one.host, ncpus=ncpus, flop_per_s=FlopPerSecond(flop_per_s))
    context = assumed_context(RequestView(volunteer=one.volunteer, host=host), a_catalogue(), now=NOW)
    return len(choose(context, an_array([0] * 10, [0] * 10)).chosen)


@pytest.mark.parametrize("flop_per_s", [1e9, 3.6e12, 4e12, 1e15])
@pytest.mark.parametrize("ncpus", [1, 3])
def test_idle_host_requests_one_job_per_processor(ncpus: int, flop_per_s: float) -> None:
    assert jobs_for(ncpus, flop_per_s) == ncpus


def test_idle_processors_are_those_no_job_occupies() -> None:
    held = (a_held(ncpus=3.0), a_held())
    request = assumed_request(replace(an_asking().host, ncpus=8), held, a_catalogue())

    assert request.cpu_req_instances == 4.0


def test_host_without_idle_processor_requests_one_job() -> None:
    request = assumed_request(replace(an_asking().host, ncpus=0), (), a_catalogue())

    assert request.cpu_req_instances == 0.0 and request.cpu_req_s > 0.0
    assert CPU not in {coproc.type for coproc in request.coprocs}


async def test_sample_is_empty_before_the_first_call() -> None:
    project = await a_project()
    await project.submit(2)

    found = await sample_of(as_postgres(project.store), project.array, project.shelf.held, project.clock)

    assert (found.hosts, found.jobs) == (0, 0)


def test_only_the_missing_version_refuses_an_app_without_one() -> None:
    """The host also gets no GPU jobs, which does not matter for an app that has no version for it."""
    catalogue, array = a_catalogue(), an_array([0], [0])
    host = a_host(platforms=("windows_x86_64",), coprocessors=(Coprocessor(NVIDIA, 1),))
    view = RequestView(volunteer=a_volunteer(no_gpu=True), host=host)
    context = assumed_context(view, catalogue, now=NOW)
    caller = Caller(host.host_id, RequestKey(b"", host.host_id), NOW)

    refused = refused_classes(traced(context, Untouched(array)), bests_of(context, catalogue.apps))
    [answer] = all_answers([caller], [view], array, catalogue, NOW)

    assert [[one.code for one in whys] for whys in refused.values()] == [[RefusalCode.PLATFORM]]
    assert [one.code for one in answer.refusals] == [RefusalCode.PLATFORM]
