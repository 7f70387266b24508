"""A view that records what is taken shows a request the same work, and leaves it to the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from administration.explain.dry_run import Untouched, array_of, supposed_asking, supposed_request
from domain.apps import CPU
from domain.batches import QoS
from domain.dispatch import RequestView
from domain.jobs import Candidate
from domain.units import FlopPerSecond, HostId, InstanceId, JobId, Seconds, VolunteerId
from feeder.array import JobArray
from scheduler.context import SchedulingContext
from scheduler.selection import choose
from tests.builders import NOW, a_batch, a_job_class, a_ready
from tests.unit.jobs.projects import HandClock
from tests.unit.scheduler.arrays import a_catalogue, a_want, an_asking


def an_array(retries: list[int], siblings: list[int], qos: QoS = QoS.AFAP) -> JobArray:
    """One batch's instances; `siblings` are hosts that had the job of each."""
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
def test_a_decision_on_a_view_is_the_decision_and_takes_nothing(
    slots: list[tuple[int, int]], req_s: float, qos: QoS
) -> None:
    retries, siblings = [tried for tried, _ in slots], [host for _, host in slots]
    asking: SchedulingContext = an_asking(wants=(a_want(req_s=Seconds(req_s)),))
    array = an_array(retries, siblings, qos)
    before = [list(group.slots()) for group in array.groups()]

    on_views = [choose(asking, Untouched(array)) for _ in range(2)]

    assert [list(group.slots()) for group in array.groups()] == before
    taken = choose(asking, an_array(retries, siblings, qos))
    for found in on_views:
        assert found.chosen == taken.chosen
        assert found.counts() == taken.counts()


def test_what_was_taken_is_gone_from_that_view_until_it_is_given_back() -> None:
    view = Untouched(an_array([0], [0]))
    [slot] = view.groups()[0].slots()

    view.take(slot, HostId(1), VolunteerId(1))
    assert list(view.groups()) == []

    view.give_back(slot)
    assert list(view.groups()[0].slots()) == [slot]


async def test_a_view_knows_of_no_more_work() -> None:
    assert await Untouched(an_array([0], [0])).search([], 9) is False


def asked_of(ncpus: int, flop_per_s: float) -> int:
    """How many of ten jobs a host with so many idle CPUs of such a speed would be given."""
    one = an_asking()
    host = replace(one.host, ncpus=ncpus, flop_per_s=FlopPerSecond(flop_per_s))
    asking = supposed_asking(RequestView(volunteer=one.volunteer, host=host), a_catalogue(), now=NOW)
    return len(choose(asking, an_array([0] * 10, [0] * 10)).chosen)


@pytest.mark.parametrize("flop_per_s", [1e9, 3.6e12, 4e12, 1e15])
@pytest.mark.parametrize("ncpus", [1, 3])
def test_an_idle_host_asks_for_a_job_per_processor_even_of_jobs_shorter_than_a_second(
    ncpus: int, flop_per_s: float
) -> None:
    assert asked_of(ncpus, flop_per_s) == ncpus


def test_a_host_without_an_idle_processor_still_asks_for_a_job() -> None:
    request = supposed_request(replace(an_asking().host, ncpus=0), (), a_catalogue())

    assert request.cpu_req_instances == 0.0 and request.cpu_req_s > 0.0
    assert CPU not in {coproc.type for coproc in request.coprocs}
