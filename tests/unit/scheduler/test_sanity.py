"""Sanitizing a host's description of itself."""

from __future__ import annotations

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from domain.apps import NVIDIA
from domain.dispatch import ReportedResult
from domain.hosts import Coprocessor, Host
from domain.units import FlopPerSecond, HostId, Instant, Seconds, VolunteerId
from scheduler import sanity
from tests.builders import NOW, a_host
from wire.messages import CoprocRequest, HostInfo, SchedulerRequest

numbers = st.floats(allow_nan=False, allow_infinity=False)
wholes = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=400)


@st.composite
def requests(draw: st.DrawFn) -> SchedulerRequest:
    info = HostInfo(
        domain_name=draw(texts),
        host_cpid=draw(texts),
        ncpus=draw(wholes),
        cpu_model=draw(texts),
        flop_per_s=draw(numbers),
        ram_bytes=draw(numbers),
        disk_free_bytes=draw(numbers),
        os_name=draw(texts),
    )
    coprocs = tuple(
        CoprocRequest(draw(texts), draw(wholes), draw(numbers), draw(numbers), draw(wholes), usable=draw(st.booleans()))
        for _ in range(draw(st.integers(0, 3)))
    )
    return SchedulerRequest(
        "key",
        rpc_seqno=draw(wholes),
        client_version=(draw(wholes), draw(wholes), draw(wholes)),
        platforms=tuple(draw(st.lists(texts, max_size=20))),
        on_fraction=draw(numbers),
        active_fraction=draw(numbers),
        gpu_active_fraction=draw(numbers),
        ram_max_used_busy_fraction=draw(numbers),
        ram_max_used_idle_fraction=draw(numbers),
        max_ncpus_fraction=draw(numbers),
        disk_project_share_bytes=draw(st.none() | numbers),
        disk_project_used_bytes=draw(numbers),
        host=info,
        coprocs=coprocs,
    )


@given(requests())
def test_host_of_any_request_can_be_stored(request: SchedulerRequest) -> None:
    host = sanity.described(a_host(), request, now=Instant(NOW + 1.0))
    assert 0.01 <= host.on_fraction <= 1.0
    assert 0.01 <= host.active_fraction <= 1.0
    assert 0.01 <= host.gpu_active_fraction <= 1.0
    assert 1 <= host.ncpus <= 4096
    assert 1e6 <= host.flop_per_s <= 1e12
    assert 64 * 2**20 <= host.ram_bytes <= 2**60
    assert 0.0 <= host.disk_free_bytes <= 2**60
    assert 0 <= host.rpc_seqno < 2**31
    assert 0 <= host.client_version < 2**31
    assert len(host.platforms) <= 16
    for text in (host.domain_name, host.host_cpid, host.cpu_model, host.os_name, *host.platforms):
        assert len(text) <= 255 and "\x00" not in text
        text.encode("utf-8")
    for gpu in host.coprocessors:
        assert gpu.type and 1 <= gpu.count <= 64
        assert 0.0 <= gpu.peak_flop_per_s <= 1e16 and gpu.ram_bytes >= 0.0
        assert 0 <= gpu.driver_version < 2**31


def test_who_the_host_is_does_not_come_from_its_description() -> None:
    known = a_host(host_id=HostId(9), created_at=Instant(5.0))
    host = sanity.described(known, SchedulerRequest("key"), now=NOW)
    assert (host.host_id, host.volunteer_id, host.created_at) == (9, known.volunteer_id, 5.0)
    assert host.last_rpc_at == NOW


def test_memory_is_the_larger_of_the_owners_limits() -> None:
    request = SchedulerRequest(
        "key",
        ram_max_used_busy_fraction=0.5,
        ram_max_used_idle_fraction=0.9,
        host=HostInfo(ram_bytes=10e9),
    )
    assert sanity.usable_ram_bytes(request) == 9e9


def test_disk_is_the_share_less_what_is_used_and_never_negative() -> None:
    request = SchedulerRequest("key", disk_project_share_bytes=10e9, disk_project_used_bytes=4e9)
    assert sanity.usable_disk_bytes(request) == 6e9
    assert sanity.usable_disk_bytes(replace(request, disk_project_used_bytes=40e9)) == 0.0
    assert sanity.usable_disk_bytes(replace(request, disk_project_used_bytes=-4e9)) == 10e9


def test_without_a_share_the_free_disk_counts() -> None:
    assert sanity.usable_disk_bytes(SchedulerRequest("key", host=HostInfo(disk_free_bytes=7e9))) == 7e9


def test_unusable_gpus_are_ignored_and_types_count_once() -> None:
    coprocs = (
        CoprocRequest("NVIDIA", 0),
        CoprocRequest("ATI", 1, usable=False),
        CoprocRequest("fake_gpu", 2, 1e12),
        CoprocRequest("fake_gpu", 9, 1e12),
        CoprocRequest("cpu", 4),
    )
    assert [(gpu.type, gpu.count) for gpu in sanity.coprocessors(coprocs)] == [("fake_gpu", 2)]


@given(elapsed=numbers, cpu=numbers, turnaround=numbers, ncpus=st.integers(1, 4096))
def test_run_times_lie_within_what_was_possible(elapsed: float, cpu: float, turnaround: float, ncpus: int) -> None:
    result = ReportedResult("pi_1_1_1", 5, 0, Seconds(elapsed), Seconds(cpu))
    elapsed_s, cpu_s = sanity.run_times(result, turnaround_s=turnaround, ncpus=ncpus)
    assert 0.0 <= elapsed_s <= max(0.0, turnaround)
    assert 0.0 <= cpu_s <= elapsed_s * ncpus


def test_nothing_of_an_earlier_description_survives() -> None:
    before = Host(
        HostId(7),
        VolunteerId(8),
        host_cpid="2" * 32,
        rpc_seqno=99,
        created_at=Instant(1.0),
        last_rpc_at=Instant(2.0),
        domain_name="old",
        ncpus=64,
        flop_per_s=FlopPerSecond(7e9),
        ram_bytes=1.0,
        disk_free_bytes=1.0,
        on_fraction=0.5,
        active_fraction=0.5,
        gpu_active_fraction=0.5,
        platforms=("old",),
        os_name="old",
        os_version="old",
        cpu_vendor="old",
        cpu_model="old",
        client_version=1,
        coprocessors=(Coprocessor(NVIDIA, 1),),
        clock_skew_s=Seconds(9.0),
        labels=("lab",),
        software="docker/1",
    )
    after = sanity.described(before, SchedulerRequest("key"), now=NOW)
    kept = {one.name for one in fields(Host) if getattr(before, one.name) == getattr(after, one.name)}
    assert kept == {"host_id", "volunteer_id", "created_at", "labels"}
