"""The request a host is supposed to send asks for one job per idle processor, however short the jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from administration.explain.asking import supposed_asking, supposed_request
from domain.apps import CPU
from domain.dispatch import RequestView
from domain.units import FlopPerSecond
from scheduler.selection import choose
from tests.builders import NOW
from tests.unit.administration.explain.test_arrays import an_array
from tests.unit.scheduler.arrays import a_catalogue, an_asking


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
