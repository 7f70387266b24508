"""The feasibility checks: each refusal names both numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import CPU, NVIDIA
from domain.batches import BatchCounts
from domain.host_classes import ClassesByApp, ClassStanding, HostClasses
from domain.hosts import Coprocessor
from domain.jobs import Ready
from domain.refusals import Refusal, RefusalCode
from domain.units import AppId, Flop, FlopPerSecond, Instant, Seconds
from scheduler.context import SchedulingContext
from scheduler.feasibility import (
    device_refusal,
    fits_cpus,
    fits_disk,
    fits_hr,
    fits_memory,
    hr_class_of,
    hr_refusal,
    is_beta_wanted,
    is_offered,
    is_selected,
    queue_refusal,
)
from scheduler.selection import choose
from tests.builders import NOW, a_batch, a_host, a_job_class, a_ready, a_volunteer, an_app
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking


def check(found: Refusal | None, code: RefusalCode, *parts: str) -> None:
    assert found is not None
    assert found.code is code
    for part in parts:
        assert part in found.detail


def test_memory_refusal_names_both_numbers() -> None:
    context = an_asking(host=a_host(ram_bytes=100.0))
    assert fits_memory(a_job_class(memory_bytes=100.0), context, 0.0) is None
    check(fits_memory(a_job_class(memory_bytes=101.0), context, 0.0), RefusalCode.MEMORY, "101", "100")


def test_disk_refusal_names_both_numbers() -> None:
    context = an_asking()
    assert fits_disk(a_job_class(disk_bytes=100.0), context, 100.0) is None
    check(fits_disk(a_job_class(disk_bytes=101.0), context, 100.0), RefusalCode.DISK, "101", "100")


def test_cpus_refusal_names_both_numbers() -> None:
    context = an_asking(host=a_host(ncpus=4))
    assert fits_cpus(a_job_class(ncpus=4.0), context, 0.0) is None
    check(fits_cpus(a_job_class(ncpus=4.5), context, 0.0), RefusalCode.CPUS, "4.5", "has 4")


def bound(hosts: str) -> SchedulingContext:
    gpu = Coprocessor(NVIDIA, 2)
    host = a_host(ncpus=4, ram_bytes=8e9, coprocessors=(gpu,), platforms=("linux",), labels=("lab", "old"))
    return an_asking(catalogue=a_catalogue(ordering__queue_hosts=f"normal:{hosts}"), host=host)


@pytest.mark.parametrize(
    "met",
    ["ncpus>=4", "ncpus<=4", "ram_bytes>=8e9,gpus>=2", "gpu=NVIDIA", "platform=mac|linux", "label=lab", "label!=slow"],
)
def test_host_that_meets_a_queues_conditions_is_not_refused(met: str) -> None:
    assert queue_refusal(a_batch(), bound(met)) is None
    assert queue_refusal(a_batch(queue="bonus"), bound("ncpus>=4096")) is None


@pytest.mark.parametrize(
    ("unmet", "parts"),
    [
        ("ncpus>=4,ncpus>=5", ("ncpus >= 5", "has 4")),
        ("ncpus<=3", ("ncpus <= 3", "has 4")),
        ("ram_bytes>=16e9", ("ram_bytes >= 16 GB", "has 8 GB")),
        ("gpus<=1", ("gpus <= 1", "has 2")),
        ("gpu!=NVIDIA", ("gpu != NVIDIA", "has NVIDIA")),
        ("platform=mac|windows", ("platform = mac or windows", "has linux")),
        ("label=cluster", ("label = cluster", "has lab, old")),
        ("volunteer=12", ("volunteer = 12", "has")),
    ],
)
def test_queue_refusal_names_queue_and_both_values(unmet: str, parts: tuple[str, ...]) -> None:
    check(queue_refusal(a_batch(), bound(unmet)), RefusalCode.QUEUE, "queue normal", *parts)


def test_no_job_gets_more_cpus_than_the_volunteer_lends_one() -> None:
    context = an_asking(host=a_host(ncpus=8), volunteer=a_volunteer(max_cpus=2))
    assert fits_cpus(a_job_class(ncpus=2.0), context, 0.0) is None
    check(fits_cpus(a_job_class(ncpus=3.0), context, 0.0), RefusalCode.CPUS, "needs 3", "allows 2")


def test_a_volunteer_who_selected_apps_gets_no_others() -> None:
    all_apps, some = an_asking(), an_asking(volunteer=a_volunteer(apps=(7, 8)))
    assert is_selected(an_app(), all_apps) is None
    assert is_selected(an_app(app_id=8), some) is None
    check(is_selected(an_app(), some), RefusalCode.APP_NOT_SELECTED, "pi", "2 apps")


def test_a_beta_app_is_for_volunteers_who_opted_in() -> None:
    assert is_beta_wanted(an_app(), an_asking()) is None
    assert is_beta_wanted(an_app(beta=True), an_asking(volunteer=a_volunteer(beta=True))) is None
    check(is_beta_wanted(an_app(beta=True), an_asking()), RefusalCode.BETA, "pi")


def test_a_deprecated_app_is_not_offered() -> None:
    assert is_offered(an_app(), an_asking()) is None
    check(is_offered(an_app(deprecated=True), an_asking()), RefusalCode.NO_APP_VERSION, "pi")


def test_a_type_without_a_device_gets_no_work() -> None:
    check(device_refusal(a_want(NVIDIA, count=0), an_asking()), RefusalCode.PLAN_CLASS, "NVIDIA", "the client has 0")


def test_a_volunteer_without_gpu_work_keeps_the_cpus_busy() -> None:
    context = an_asking(volunteer=a_volunteer(no_gpu=True))
    check(device_refusal(a_want(NVIDIA), context), RefusalCode.NO_GPU, "NVIDIA")
    assert device_refusal(a_want(CPU), context) is None


def test_a_volunteer_who_keeps_the_cpus_lends_the_gpus_still() -> None:
    context = an_asking(volunteer=a_volunteer(no_cpu=True))
    check(device_refusal(a_want(CPU), context), RefusalCode.NO_CPU, "CPU work")
    assert device_refusal(a_want(NVIDIA), context) is None


def test_hr_classes_differ_by_os_and_vendor() -> None:
    intel = a_host(os_name="Linux Debian", cpu_vendor="GenuineIntel")
    amd, windows = replace(intel, cpu_vendor="AuthenticAMD"), replace(intel, os_name="Microsoft Windows 11")
    assert len({hr_class_of(host, 1) for host in (intel, amd, windows)}) == 3
    assert hr_class_of(intel, 2) == hr_class_of(amd, 2) != hr_class_of(windows, 2)
    assert hr_class_of(intel, 0) == 0


def test_host_of_unknown_class_gets_no_hr_jobs() -> None:
    unknown = an_asking(host=a_host(os_name="Plan 9", cpu_vendor="GenuineIntel"))
    check(fits_hr(a_job_class(hr_type=1), unknown, 0.0), RefusalCode.HR_CLASS, "'Plan 9'", "type 1")
    assert fits_hr(a_job_class(hr_type=0), unknown, 0.0) is None
    assert fits_hr(a_job_class(hr_type=2), an_asking(), 0.0) is None


def test_a_job_stays_in_the_class_of_its_first_host() -> None:
    assert hr_refusal(a_ready(hr_class=0), 21) is None
    assert hr_refusal(a_ready(hr_class=21), 21) is None
    check(hr_refusal(a_ready(hr_class=11), 21), RefusalCode.HR_CLASS, "11", "21")


INTEL, AMD = 21, 22


def a_class(hr_class: int, speed: float, hosts: int = 50, queued: float = 0.0) -> ClassStanding:
    return ClassStanding(
        AppId(1), 1, hr_class, hosts, float(hosts), FlopPerSecond(speed), Seconds(3600.0), Flop(queued)
    )


def context(vendor: str, *classes: ClassStanding) -> SchedulingContext:
    found = ClassesByApp.made(HostClasses(Instant(NOW), classes))
    catalogue = replace(a_catalogue(deadline__rule="fixed", scheduler__jobs_per_request=1000), host_classes=found)
    return an_asking(host=a_host(cpu_vendor=vendor), catalogue=catalogue, wants=(a_want(req_s=Seconds(1e9)),))


def jobs(count: int, **changes: Any) -> ListGroup:
    counts = BatchCounts(jobs_total=count, unsent=count)
    return a_group(1, count, **{"hr_type": 1, "quorum": 2, "counts": counts, **changes})


def given(request: SchedulingContext, group: ListGroup) -> int:
    return len(choose(request, ListArray([group])).chosen)


def test_few_jobs_go_to_the_soonest_class_alone() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))

    assert given(context("GenuineIntel", *classes), jobs(5)) == 0
    assert given(context("AuthenticAMD", *classes), jobs(5)) == 5


def test_a_queue_counts_against_a_class() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12, queued=1e18))

    assert given(context("GenuineIntel", *classes), jobs(5)) == 5
    assert given(context("AuthenticAMD", *classes), jobs(5)) == 0


def test_jobs_are_divided_so_that_all_classes_end_together() -> None:
    classes = (a_class(INTEL, 1e9), a_class(AMD, 3e9))

    counts = BatchCounts(jobs_total=3000, unsent=3000)
    parts = [jobs(30, ready=ready_from(n), counts=counts) for n in range(0, 3000, 30)]
    of_amd = [given(context("AuthenticAMD", *classes), part) for part in parts]

    assert 0.7 < sum(of_amd) / 3000 < 0.8


def ready_from(first: int) -> list[Ready]:
    return [a_ready(instance_id=n, job_id=n) for n in range(first + 1, first + 31)]


def test_a_job_is_for_one_class_and_the_refusal_says_which() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))

    choice = choose(context("GenuineIntel", *classes), ListArray([jobs(5)]))

    assert not missing(choice.reasons({})[RefusalCode.HR_CLASS][1], "assigned to HR class 22", "class 21", "0 %")


def test_a_class_with_too_few_hosts_for_a_quorum_gets_none() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12, hosts=1))

    assert given(context("GenuineIntel", *classes), jobs(5)) == 5


def test_first_host_fixes_the_class_while_classes_are_unknown() -> None:
    assert given(context("GenuineIntel"), jobs(5)) == 5
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))
    committed = [a_ready(instance_id=n, job_id=n, hr_class=INTEL) for n in range(1, 6)]
    assert given(context("GenuineIntel", *classes), jobs(5, ready=committed)) == 5
