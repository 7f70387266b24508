"""The effects of reports, and their acknowledgement."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dispatch import (
    Report,
    Reported,
    ReportedFile,
    ReportedResult,
    RequestKey,
    RequestWrites,
    TrickleFate,
    Upload,
)
from domain.errors import UnavailableError
from domain.havs import HavEventKind
from domain.jobs import InstanceState, Output
from domain.units import Flop, HostId, InstanceId, Instant, Seconds, later
from scheduler.reports import ReportsTaken, take_reports
from tests.builders import NOW, a_held, a_host
from tests.unit.scheduler.project import KEY, MD5, Project, a_project, a_request, a_success, a_time_out, listed
from tests.worlds import hash_of
from wire.messages import HostInfo, TrickleUp

NAME = "pi_1_1_1"


def a_reported(**changes: Any) -> Reported:
    values: dict[str, Any] = {
        "held": a_held(),
        "state": InstanceState.IN_PROGRESS,
        "app_name": "pi",
        "fpops_est_flop": Flop(3.6e12),
        "outputs": (Output("out", 100_000),),
        "uploads": (Upload(f"{NAME}_r0", 30, MD5),),
    }
    return Reported(**(values | changes))


def taken(*results: ReportedResult, **changes: Any) -> ReportsTaken:
    return take_reports(results, {InstanceId(1): a_reported(**changes)}, a_host(ncpus=2), now=NOW)


def the_report(*results: ReportedResult, **changes: Any) -> Report:
    [report] = taken(*results, **changes).reports
    return report


def test_a_success_waits_for_its_validation_without_an_event() -> None:
    report = the_report(a_success(NAME))
    assert (report.from_state, report.to_state) == (InstanceState.IN_PROGRESS, InstanceState.REPORTED)
    assert (report.elapsed_s, report.cpu_s) == (100.0, 90.0)
    assert report.hav_event is None and report.turnaround_sample is None


@pytest.mark.parametrize(
    ("file", "word"),
    [
        (ReportedFile(f"{NAME}_r0", 30.0, "0" * 32), "MD5"),
        (ReportedFile(f"{NAME}_r0", 31.0, MD5), "31"),
        (ReportedFile(f"{NAME}_r0", 30.0, MD5, "permanent upload error"), "permanent upload error"),
    ],
)
def test_a_success_whose_file_differs_is_a_failure_that_names_it(file: ReportedFile, word: str) -> None:
    report = the_report(a_success(NAME, files=(file,)))
    assert report.to_state is InstanceState.FAILED
    assert "out" in report.reason and word in report.reason


def test_an_error_resets_the_host() -> None:
    report = the_report(ReportedResult(NAME, 3, 139, stderr="boom"))
    assert report.to_state is InstanceState.FAILED and report.exit_status == 139
    assert "139" in report.reason and report.stderr == "boom"
    assert report.hav_event is not None and report.hav_event.kind is HavEventKind.ERROR


@pytest.mark.parametrize(
    ("exit_status", "no_longer_needed", "recorded"),
    [
        pytest.param(203, False, HavEventKind.LOST, id="by the user"),
        pytest.param(202, True, None, id="requested by the server"),
        pytest.param(202, False, HavEventKind.LOST, id="not requested"),
    ],
)
def test_an_abort_costs_quota_unless_the_server_asked(
    exit_status: int, no_longer_needed: bool, recorded: HavEventKind | None
) -> None:
    given = a_held(no_longer_needed=no_longer_needed)
    report = the_report(ReportedResult(NAME, 6, exit_status), held=given)
    assert report.to_state is InstanceState.ABORTED
    assert (report.hav_event.kind if report.hav_event else None) is recorded


def test_unstarted_job_counts_as_time_out_of_ten_runtimes() -> None:
    given = a_held(sent_at=Instant(NOW - 7200.0), due_at=NOW)
    report = the_report(ReportedResult(NAME, 6, 200), held=given)
    assert report.hav_event is not None and report.hav_event.kind is HavEventKind.TIMED_OUT
    assert report.hav_event.ln_turnaround_ratio == report.turnaround_sample == math.log(10.0)
    late = the_report(ReportedResult(NAME, 6, 200), held=replace(given, sent_at=Instant(NOW - 20 * 3600.0)))
    assert late.turnaround_sample == pytest.approx(math.log(20.0))
    early = the_report(ReportedResult(NAME, 6, 200), held=replace(given, due_at=Instant(NOW + 28 * 3600.0)))
    assert early.turnaround_sample == pytest.approx(math.log(30.0))  # the allowed time counts


def test_late_success_keeps_its_time_out_sample_until_validation() -> None:
    report = the_report(a_success(NAME), state=InstanceState.TIMED_OUT, turnaround_sample=2.5)
    assert report.to_state is InstanceState.REPORTED
    assert report.hav_event is None and report.turnaround_sample == 2.5


def test_a_late_error_leaves_the_sample_of_its_time_out() -> None:
    at = Instant(NOW - 86_400.0)
    report = the_report(ReportedResult(NAME, 3, 1), state=InstanceState.TIMED_OUT, turnaround_sample=2.5, timeout_at=at)
    assert report.hav_event is not None
    assert (report.hav_event.replaces, report.hav_event.replaces_at) == (2.5, at)
    assert report.hav_event.takes_back is None and report.turnaround_sample == 2.5


def test_a_late_abort_leaves_the_time_out_as_it_is() -> None:
    report = the_report(ReportedResult(NAME, 6, 203), state=InstanceState.TIMED_OUT, turnaround_sample=2.5)
    assert report.hav_event is None and report.turnaround_sample == 2.5


@pytest.mark.parametrize(
    "state", [InstanceState.REPORTED, InstanceState.VALID, InstanceState.INVALID, InstanceState.TOO_LATE]
)
def test_a_repeated_report_is_acknowledged_and_makes_no_step(state: InstanceState) -> None:
    assert taken(a_success(NAME), state=state) == ReportsTaken((), (NAME,))


def test_repeated_error_makes_no_step() -> None:
    assert taken(ReportedResult(NAME, 3, 1), state=InstanceState.FAILED) == ReportsTaken((), (NAME,))


def test_success_replaces_an_error() -> None:
    """The error stays in the host's statistics: the success is recorded when it is validated."""
    before = Instant(NOW - 60.0)
    report = the_report(a_success(NAME), state=InstanceState.FAILED, reported_at=before)

    assert (report.from_state, report.to_state) == (InstanceState.FAILED, InstanceState.REPORTED)
    assert (report.reported_before_at, report.hav_event, report.reason) == (before, None, "")


def test_a_result_named_twice_counts_once_the_first_time() -> None:
    both = taken(ReportedResult(NAME, 3, 7), a_success(NAME))
    assert both.acks == (NAME,)
    assert [report.exit_status for report in both.reports] == [7]


def test_a_name_that_only_ends_like_ours_makes_no_step() -> None:
    assert taken(a_success("evil_1")) == ReportsTaken((), ("evil_1",))


def test_run_times_are_bounded_by_the_turnaround() -> None:
    report = the_report(a_success(NAME, elapsed_s=Seconds(1e12), cpu_s=Seconds(1e12)))
    assert (report.elapsed_s, report.cpu_s) == (3600.0, 7200.0)


def test_what_the_database_cannot_keep_is_left_out() -> None:
    report = the_report(ReportedResult(NAME, 3, 2**60, stderr="a\x00b\ud800c"))
    assert report.exit_status == 2**31 - 1
    assert report.stderr == "ab?c"


names = st.sampled_from([NAME, "pi_1_1_2", "", "nonsense", "fake_0", "_1", "pi_1_1_999999999999999999999"])


@given(
    st.lists(st.builds(ReportedResult, names, st.integers(-1, 9), st.integers(-300, 300)), max_size=6),
    st.sampled_from(list(InstanceState)),
)
def test_each_name_is_acknowledged_once_with_at_most_one_step(
    results: list[ReportedResult], state: InstanceState
) -> None:
    found = taken(*results, state=state)
    assert set(found.acks) == {result.name for result in results} - {""}
    assert len(found.acks) == len(set(found.acks))
    assert len(found.reports) <= 1
    for report in found.reports:
        assert report.instance_id == 1 and report.from_state is state


SENT_AT = Instant(NOW - 5.0)


def said(text: str = "half", name: str = "pi_1_1_1") -> TrickleUp:
    return TrickleUp(name, SENT_AT, "progress", text)


async def a_busy_project(**settings: object) -> Project:
    """Host 1 has pi_1_1_1 in progress."""
    project = await a_project()
    await project.set(**settings)
    await project.submit(2)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    return project


async def texts(project: Project) -> list[str]:
    return [one.text for one in await project.store.trickles.of_instance(InstanceId(1), after=0, limit=99)]


async def test_a_message_is_kept_once_and_acknowledged_each_time() -> None:
    """The client repeats a message after a lost acknowledgement."""
    project = await a_busy_project()
    for seqno in (1, 2):
        project.clock.at = later(NOW, 60.0 * seqno)
        reply = await project.answer(
            a_request(host_id=1, rpc_seqno=seqno, trickles=(said(),), other_results=listed("pi_1_1_1"))
        )
        assert reply.ack_trickles

    [kept] = await project.store.trickles.of_instance(InstanceId(1), after=0, limit=9)
    assert (kept.variety, kept.text, kept.sent_at, kept.received_at) == ("progress", "half", SENT_AT, NOW + 60.0)
    assert project.counts.trickles == Counter({TrickleFate.KEPT: 2})


async def test_a_request_without_messages_acknowledges_none() -> None:
    project = await a_busy_project()

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_1_1_1")))

    assert not reply.ack_trickles


async def test_what_is_not_kept_is_acknowledged_and_counted() -> None:
    project = await a_busy_project(files__max_trickle_bytes=4, files__trickles_per_instance=2)
    messages = (said("a" * 5), said("ä" * 3), said("pi", name="pi_1_2_2"), said("one"), said("two"), said("six"))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, trickles=messages, more_trickles=7, other_results=listed("pi_1_1_1"))
    )

    assert reply.ack_trickles
    assert await texts(project) == ["one", "two"]
    assert project.counts.trickles == Counter(
        {
            TrickleFate.KEPT: 2,
            TrickleFate.TOO_LARGE: 2,
            TrickleFate.TOO_MANY: 8,
            TrickleFate.NOT_IN_PROGRESS: 1,
        }
    )


async def test_a_message_of_another_host_changes_nothing() -> None:
    project = await a_busy_project()

    reply = await project.answer(a_request(host=HostInfo(host_cpid="2" * 32), trickles=(said(),)))

    assert reply.ack_trickles
    assert await texts(project) == []
    assert project.counts.trickles == Counter({TrickleFate.NOT_IN_PROGRESS: 1})


async def test_nothing_is_acknowledged_that_could_not_be_stored() -> None:
    project = await a_busy_project()
    project.ledger.down_from_write = len(project.ledger.writes)

    with pytest.raises(UnavailableError):
        await project.answer(a_request(host_id=1, rpc_seqno=1, trickles=(said(),), other_results=listed("pi_1_1_1")))


async def test_restored_client_has_its_messages_stored() -> None:
    """The instance and its messages move to the new record."""
    project = await a_busy_project()
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))

    reply = await project.answer(replace(lists, rpc_seqno=3, trickles=(said(),)))

    assert (reply.host_id, reply.ack_trickles) == (2, True)
    assert await texts(project) == ["half"]


async def test_restored_client_with_lost_reply_has_messages_stored() -> None:
    project = await a_busy_project()
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))
    await project.answer(replace(lists, rpc_seqno=3))

    reply = await project.answer(replace(lists, rpc_seqno=3, trickles=(said(),)))

    assert (reply.host_id, reply.ack_trickles) == (2, True)
    assert await texts(project) == ["half"]


async def test_timed_out_instance_still_running_keeps_messages() -> None:
    project = await a_busy_project()
    [held] = (await project.store.ledger.read(RequestKey(hash_of(KEY), HostId(1)))).held
    [host] = await project.store.views.hosts(limit=1)
    timed_out = a_time_out(held)
    await project.store.ledger.write(RequestWrites(host, (timed_out,)))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, trickles=(said(),), other_results=listed("pi_1_1_1"))
    )

    assert reply.ack_trickles
    assert await texts(project) == ["half"]


@pytest.mark.parametrize("is_restored", [False, True])
async def test_last_message_comes_with_the_report(is_restored: bool) -> None:
    project = await a_busy_project()
    await project.upload("pi_1_1_1")
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))
    last = a_request(host_id=1, trickles=(said("all"),), results=(a_success("pi_1_1_1"),))

    reply = await project.answer(replace(last, rpc_seqno=3 if is_restored else 9))

    assert (reply.acks, reply.ack_trickles) == (("pi_1_1_1",), True)
    assert await texts(project) == ["all"]


async def test_ended_instance_keeps_no_messages() -> None:
    """A message after the end of its instance is counted as not in progress."""
    project = await a_busy_project()
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=2, trickles=(said(),), results=(a_success("pi_1_1_1"),))
    )

    assert reply.ack_trickles
    assert await texts(project) == []
    assert project.counts.trickles == Counter({TrickleFate.NOT_IN_PROGRESS: 1})
