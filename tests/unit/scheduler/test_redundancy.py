"""Jobs whose replicas need hosts alike begin where they are complete soonest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.batches import BatchCounts
from domain.host_classes import ClassesByApp, ClassStanding, HostClasses
from domain.jobs import Ready
from domain.refusals import RefusalCode
from domain.units import AppId, Flop, FlopPerSecond, Instant, Seconds
from scheduler.asking import Asking
from scheduler.dispatch import choose
from tests.builders import NOW, a_host, a_ready
from tests.unit.scheduler.arrays import ListArray, ListGroup, a_catalogue, a_group, a_want, an_asking

INTEL, AMD = 21, 22


def a_class(hr_class: int, speed: float, hosts: int = 50, queued: float = 0.0) -> ClassStanding:
    return ClassStanding(
        AppId(1), 1, hr_class, hosts, float(hosts), FlopPerSecond(speed), Seconds(3600.0), Flop(queued)
    )


def asking(vendor: str, *classes: ClassStanding) -> Asking:
    found = ClassesByApp.made(HostClasses(Instant(NOW), classes))
    catalogue = replace(a_catalogue(deadline__rule="fixed", scheduler__jobs_per_request=1000), host_classes=found)
    return an_asking(host=a_host(cpu_vendor=vendor), catalogue=catalogue, wants=(a_want(req_s=Seconds(1e9)),))


def jobs(count: int, **changes: Any) -> ListGroup:
    counts = BatchCounts(jobs_total=count, unsent=count)
    return a_group(1, count, **{"hr_type": 1, "quorum": 2, "counts": counts, **changes})


def given(request: Asking, group: ListGroup) -> int:
    return len(choose(request, ListArray([group])).chosen)


def test_few_jobs_go_to_the_soonest_class_alone() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))

    assert given(asking("GenuineIntel", *classes), jobs(5)) == 0
    assert given(asking("AuthenticAMD", *classes), jobs(5)) == 5


def test_a_queue_counts_against_a_class() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12, queued=1e18))

    assert given(asking("GenuineIntel", *classes), jobs(5)) == 5
    assert given(asking("AuthenticAMD", *classes), jobs(5)) == 0


def test_many_jobs_are_divided_so_that_every_class_is_done_at_the_same_time() -> None:
    classes = (a_class(INTEL, 1e9), a_class(AMD, 3e9))

    counts = BatchCounts(jobs_total=3000, unsent=3000)
    parts = [jobs(30, ready=ready_from(n), counts=counts) for n in range(0, 3000, 30)]
    of_amd = [given(asking("AuthenticAMD", *classes), part) for part in parts]

    assert 0.7 < sum(of_amd) / 3000 < 0.8


def ready_from(first: int) -> list[Ready]:
    return [a_ready(instance_id=n, job_id=n) for n in range(first + 1, first + 31)]


def test_a_job_is_for_one_class_and_the_refusal_says_which() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))

    choice = choose(asking("GenuineIntel", *classes), ListArray([jobs(5)]))

    assert choice.reasons()[RefusalCode.HR_CLASS][1] == (
        "job is for hosts of class 22, where it is complete soonest; this one is of class 21, which has 0 % of them"
    )


def test_a_class_with_too_few_hosts_for_a_quorum_gets_none() -> None:
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12, hosts=1))

    assert given(asking("GenuineIntel", *classes), jobs(5)) == 5


def test_the_first_host_decides_while_classes_are_not_known_and_for_jobs_that_have_one() -> None:
    assert given(asking("GenuineIntel"), jobs(5)) == 5
    classes = (a_class(INTEL, 1e12), a_class(AMD, 2e12))
    committed = [a_ready(instance_id=n, job_id=n, hr_class=INTEL) for n in range(1, 6)]
    assert given(asking("GenuineIntel", *classes), jobs(5, ready=committed)) == 5
