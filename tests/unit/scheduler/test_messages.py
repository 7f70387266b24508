"""Messages to volunteers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import ANONYMOUS, CPU, NVIDIA
from domain.catalogue import Catalogue
from domain.dispatch import SentJob
from domain.hosts import Coprocessor
from domain.refusals import RefusalCode
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, FlopPerSecond, InstanceId, Instant, Seconds, later
from scheduler.admission import Admission, HostCase
from scheduler.elements import JobToSend
from scheduler.messages import about_host, counts_as_empty, is_unrunnable, kept_of, request_delay_s, why_no_work, work_s
from tests.builders import LINUX, NOW, a_held, a_host, a_job_class, a_plan_class, a_volunteer, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import a_catalogue, a_want

FIVE_MINUTES = Seconds(300.0)
C = RefusalCode


def test_at_most_three_reasons_the_most_frequent_first() -> None:
    """They have volunteer-facing wording, not the operators'."""
    reasons = {
        C.DISK: (1, "needs 9 GB of disk, this computer offers 1 GB"),
        C.MEMORY: (5, "needs 4 GB of memory, this computer offers 2 GB"),
        C.TOO_SLOW: (2, "would take 9 days, 7 are allowed"),
        C.CPUS: (1, "needs 8 CPUs, this computer offers 2"),
    }
    first, second, third, last = (message.text for message in why_no_work(reasons, FIVE_MINUTES))
    assert first == f"No work sent. {C.MEMORY.traits.meaning}"
    assert (second, third) == (C.TOO_SLOW.traits.meaning, C.DISK.traits.meaning)
    assert not missing(last, "5 min")


def test_no_reason_is_made_up() -> None:
    first, last = (message.text for message in why_no_work({}, FIVE_MINUTES))
    assert (first, missing(last, "5 min")) == ("No work sent.", [])
    assert kept_of({}) == ()


def test_what_the_client_knows_already_is_not_said() -> None:
    assert why_no_work({C.NO_NEW_TASKS: (1, "unrequested")}, FIVE_MINUTES) == ()


def test_only_a_host_that_runs_nothing_gets_an_important_message() -> None:
    reasons = {C.NO_APP_VERSION: (1, "no program for windows_x86_64")}
    assert [why_no_work(reasons, FIVE_MINUTES, unrunnable=it)[0].priority for it in (True, False)] == ["high", "low"]


def test_message_explains_a_new_host_record() -> None:
    admission = Admission(a_volunteer(), a_host(), HostCase.CLONE, "host 7 sent request number 3 after number 8")
    [message] = about_host(admission)
    assert "host 1" in message.text and "request number 3" in message.text
    assert about_host(Admission(a_volunteer(), a_host(), HostCase.KNOWN, "host 1")) == ()


def test_database_is_searched_unless_the_computer_is_the_reason() -> None:
    assert counts_as_empty({})
    assert counts_as_empty({C.MEMORY: (1, ""), C.DAILY_QUOTA: (1, "")})
    assert not counts_as_empty({C.IN_PROGRESS_LIMIT: (1, ""), C.NO_APP_VERSION: (2, "")})
    assert not counts_as_empty({C.NO_GPU: (1, "")})


@given(st.dictionaries(st.sampled_from(list(C)), st.tuples(st.integers(1, 9), st.text(max_size=20))))
def test_there_are_never_more_than_four_lines(reasons: dict[RefusalCode, tuple[int, str]]) -> None:
    assert len(why_no_work(reasons, FIVE_MINUTES)) <= 4


GPU_HOST = a_host(coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e11)),))


def delay_s(
    *reasons: RefusalCode,
    sent: bool = False,
    wanted: bool = True,
    work: float = 0.0,
    unrunnable: bool = False,
    held: float | None = None,
) -> float:
    return request_delay_s(
        reasons,
        sent=sent,
        wanted=wanted,
        work_s=Seconds(work),
        unrunnable=unrunnable,
        held_s=None if held is None else Seconds(held),
        settings=SchedulerSettings(),
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(delay_s(sent=True, work=9e9), 60.0, id="got work"),
        pytest.param(delay_s(sent=True, work=25.0), 25.0, id="got less work"),
        pytest.param(delay_s(sent=True, work=1.0), 10.0, id="got hardly any work"),
        pytest.param(delay_s(wanted=False), 60.0, id="wanted none"),
        pytest.param(delay_s(), 300.0, id="there is none"),
        pytest.param(delay_s(C.MEMORY), 300.0, id="no job fits"),
        pytest.param(delay_s(work=0.0, held=0.0), 10.0, id="there is none, a job was sent just now"),
        pytest.param(delay_s(work=45.0, held=20.0), 45.0, id="there is none, its work ends soon"),
        pytest.param(delay_s(work=45.0, held=90.0), 90.0, id="there is none, its work is late"),
        pytest.param(delay_s(work=9e9, held=20.0), 300.0, id="there is none, it has much work"),
        pytest.param(delay_s(C.MEMORY, C.LOST_RACE), 10.0, id="lost the race, has no work"),
        pytest.param(delay_s(C.LOST_RACE, work=9e9), 60.0, id="lost the race, has work"),
        pytest.param(delay_s(C.PLATFORM), 300.0, id="no job in the array"),
        pytest.param(delay_s(C.PLATFORM, unrunnable=True), 86400.0, id="unrunnable"),
        pytest.param(delay_s(C.PLATFORM, unrunnable=True, held=9e9), 300.0, id="unrunnable, has work to report"),
    ],
)
def test_the_delay_follows_from_what_happened(found: float, expected: float) -> None:
    assert found == expected


@given(st.floats(0.0, 1e9), st.booleans(), st.booleans(), st.sampled_from(list(C)))
def test_no_delay_is_shorter_than_a_sixth(work: float, sent: bool, wanted: bool, code: RefusalCode) -> None:
    assert delay_s(code, sent=sent, wanted=wanted, work=work) >= SchedulerSettings().request_delay_s / 6


def a_job(hours: float, *, gpu: bool = False, ncpus: float = 1.0) -> JobToSend:
    plan_class = a_plan_class(name="cuda", ncpus=0.1, gpu_type=NVIDIA) if gpu else a_plan_class(ncpus=1.0)
    version = an_app_version(app_version_id=AppVersionId(2 if gpu else 1), plan_class=plan_class)
    return JobToSend(
        a_held(),
        version,
        a_job_class(fpops_est_flop=3600e9 * hours, ncpus=ncpus),
        FlopPerSecond(1e9),
        SentJob(InstanceId(1), "", None),
    )


def test_work_is_what_all_processors_of_a_type_have() -> None:
    versions = {AppVersionId(1): an_app_version(plan_class=a_plan_class(ncpus=1.0))}
    wants = (a_want(NVIDIA, count=1), a_want(CPU, count=4))
    assert work_s([a_job(1.0), a_job(1.0)], (), wants, versions) == 1800.0
    held = [a_held(est_runtime_s=Seconds(7200.0))]
    assert work_s([a_job(1.0), a_job(1.0)], held, wants, versions) == 3600.0
    assert work_s([a_job(1.0), a_job(0.5, gpu=True)], (), wants, versions) == 900.0
    assert work_s([], held, (a_want(CPU, count=4),), versions) == 1800.0
    assert work_s([], (), wants, versions) == 0.0
    assert work_s([a_job(1.0, ncpus=4.0)], [replace(held[0], ncpus=2.0)], wants, versions) == 3600.0 + 3600.0


def of(*platforms: str, added_at: float = NOW - 2 * DAY_S, gpu: bool = False) -> Catalogue:
    """An app with a version for each platform."""
    plan_class = a_plan_class(name="cuda", ncpus=0.1, gpu_type=NVIDIA) if gpu else a_plan_class(ncpus=1.0)
    return a_catalogue(
        *[
            an_app_version(
                app_version_id=AppVersionId(number), platform=name, plan_class=plan_class, created_at=Instant(added_at)
            )
            for number, name in enumerate(platforms, 1)
        ]
    )


def test_a_host_runs_nothing_if_no_version_is_for_it() -> None:
    windows = "windows_x86_64"
    cases = [
        (a_host(), of(windows), True),
        (a_host(), of(windows, LINUX), False),
        (a_host(), of(LINUX, gpu=True), True),
        (GPU_HOST, of(LINUX, gpu=True), False),
        (a_host(platforms=(ANONYMOUS,)), of(LINUX), True),
    ]
    for host, catalogue, unrunnable in cases:
        assert is_unrunnable((C.PLATFORM,), host, catalogue, now=NOW) is unrunnable


def test_a_host_waits_for_versions_while_some_are_new() -> None:
    """An app gets a Windows version a minute before its Linux version."""
    catalogue = of("windows_x86_64", added_at=NOW - 60.0)
    assert not is_unrunnable((C.PLATFORM,), a_host(), catalogue, now=NOW)
    assert is_unrunnable((C.PLATFORM,), a_host(), catalogue, now=later(NOW, DAY_S))


@pytest.mark.parametrize("reasons", [(), (C.NO_SLOTS,), (C.PLATFORM, C.MEMORY)])
def test_other_reasons_do_not_mean_that_a_host_runs_nothing(reasons: tuple[RefusalCode, ...]) -> None:
    assert not is_unrunnable(reasons, a_host(), of("windows_x86_64"), now=NOW)
