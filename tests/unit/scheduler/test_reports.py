"""What reports change, and what is acknowledged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dispatch import Report, Reported, Upload
from domain.havs import HavEventKind
from domain.jobs import InstanceState, Output
from domain.units import Flop, InstanceId, Instant, Seconds
from scheduler.reports import ReportsTaken, take_reports
from tests.builders import NOW, a_held, a_host
from tests.unit.scheduler.project import MD5, a_success
from wire.messages import ReportedFile, ReportedResult

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
        pytest.param(202, True, None, id="asked for by the server"),
        pytest.param(202, False, HavEventKind.LOST, id="asked for by nobody"),
    ],
)
def test_an_abort_costs_quota_unless_the_server_asked(
    exit_status: int, no_longer_needed: bool, recorded: HavEventKind | None
) -> None:
    given = a_held(no_longer_needed=no_longer_needed)
    report = the_report(ReportedResult(NAME, 6, exit_status), held=given)
    assert report.to_state is InstanceState.ABORTED
    assert (report.hav_event.kind if report.hav_event else None) is recorded


def test_a_job_never_started_counts_as_a_time_out_of_ten_runtimes_at_least() -> None:
    given = a_held(sent_at=Instant(NOW - 7200.0), due_at=NOW)
    report = the_report(ReportedResult(NAME, 6, 200), held=given)
    assert report.hav_event is not None and report.hav_event.kind is HavEventKind.TIMED_OUT
    assert report.hav_event.ln_turnaround_ratio == report.turnaround_sample == math.log(10.0)
    late = the_report(ReportedResult(NAME, 6, 200), held=replace(given, sent_at=Instant(NOW - 20 * 3600.0)))
    assert late.turnaround_sample == pytest.approx(math.log(20.0))
    early = the_report(ReportedResult(NAME, 6, 200), held=replace(given, due_at=Instant(NOW + 28 * 3600.0)))
    assert early.turnaround_sample == pytest.approx(math.log(30.0))  # what it was given counts


def test_a_late_success_keeps_the_sample_of_its_time_out_for_the_validation_that_replaces_it() -> None:
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
def test_every_name_is_acknowledged_once_and_at_most_one_step_is_made(
    results: list[ReportedResult], state: InstanceState
) -> None:
    found = taken(*results, state=state)
    assert set(found.acks) == {result.name for result in results} - {""}
    assert len(found.acks) == len(set(found.acks))
    assert len(found.reports) <= 1
    for report in found.reports:
        assert report.instance_id == 1 and report.from_state is state
