"""Judging a client's report, case by case of docs/protocol.md#reports."""

from __future__ import annotations

import pytest

from domain.dispatch import ReportedFile, ReportedResult, Upload
from domain.jobs import Output
from lifecycle import outcome
from lifecycle.outcome import Judgement, judge_report
from lifecycle.states import Event
from tests.facts import missing
from wire import messages

MD5 = "45a804651bec17a5f7fe070302aa2ce7"
FILE = "pi_1_1_7_r0"


OUTPUTS = (Output("out", 100),)
CLAIMED = (ReportedFile(FILE, 30.0, MD5),)
UPLOADS = (Upload(FILE, 30, MD5),)


def judged(
    *,
    state: int = 5,
    exit_status: int = 0,
    outputs: tuple[Output, ...] = OUTPUTS,
    claimed: tuple[ReportedFile, ...] = CLAIMED,
    uploads: tuple[Upload, ...] = UPLOADS,
) -> Judgement:
    return judge_report(ReportedResult("pi_1_1_7", state, exit_status, files=claimed), outputs, uploads)


def test_an_uploaded_result_with_all_outputs_succeeds() -> None:
    assert judged() == (Event.SUCCEEDED, "")


def test_md5_is_compared_without_regard_to_case() -> None:
    assert judged(claimed=(ReportedFile(FILE, 30.0, MD5.upper()),)).event is Event.SUCCEEDED


def test_a_result_without_outputs_succeeds() -> None:
    assert judged(outputs=(), uploads=(), claimed=()) == (Event.SUCCEEDED, "")


@pytest.mark.parametrize(
    ("state", "exit_status", "event", "words"),
    [
        (6, 203, Event.USER_ABORTED, "aborted by the user"),
        (6, 202, Event.SERVER_ABORTED, "aborted by the server"),
        (6, 200, Event.UNSTARTED, "due date passed"),
        (6, 197, Event.FAILED, "longer than the job's fpops_bound"),
        (6, 196, Event.FAILED, "more disk"),
        (6, 198, Event.FAILED, "more memory"),
        (6, 201, Event.FAILED, "GPU it needs is missing"),
        (6, -226, Event.FAILED, "without a finish file"),
        (1, -186, Event.FAILED, "could not download"),
        (1, 0, Event.FAILED, "could not download"),
        (3, 3, Event.FAILED, "exit status 3"),
        (3, 11, Event.FAILED, "exit status 11"),
        (5, 4, Event.FAILED, "exit status 4"),
        (7, 0, Event.FAILED, "could not upload"),
        (6, 0, Event.FAILED, "state 6 with exit status 0"),
        (2, 0, Event.FAILED, "state 2"),
    ],
)
def test_the_cause_is_named(state: int, exit_status: int, event: Event, words: str) -> None:
    judgement = judged(state=state, exit_status=exit_status)
    assert judgement.event is event
    assert words in judgement.reason


@pytest.mark.parametrize("exit_status", [196, 197, 198, 200, 202, 203])
def test_a_programs_own_exit_code_is_not_taken_for_the_clients(exit_status: int) -> None:
    event, reason = judged(state=3, exit_status=exit_status)
    assert (event, missing(reason, "the program", f"exit status {exit_status}")) == (Event.FAILED, [])


def test_an_output_that_was_not_produced_is_named_with_its_limit() -> None:
    event, reason = judged(state=3, claimed=(), uploads=())
    assert (event, missing(reason, "output out", "not produced", "100 bytes")) == (Event.FAILED, [])


def test_output_refused_at_upload_fails_despite_the_claim() -> None:
    claimed = (ReportedFile(FILE, 30.0, MD5, error="permanent upload error"),)
    event, reason = judged(claimed=claimed, uploads=())
    assert (event, missing(reason, "output out", "not uploaded", "permanent upload error")) == (Event.FAILED, [])


def test_an_output_the_server_does_not_have_fails() -> None:
    assert not missing(judged(uploads=()).reason, f"output out ({FILE})", "not on the server")


def test_a_different_md5_names_both() -> None:
    reason = judged(uploads=(Upload(FILE, 30, "0" * 32),)).reason
    assert not missing(reason, "output out", f"MD5 {'0' * 32} on the server", f"client claims {MD5}")


def test_a_different_size_names_both() -> None:
    reason = judged(claimed=(ReportedFile(FILE, 31.0, MD5),)).reason
    assert not missing(reason, "output out", "30 bytes on the server", "client claims 31")


def test_an_output_over_its_limit_names_both_sizes() -> None:
    reason = judged(outputs=(Output("out", 29),)).reason
    assert not missing(reason, "output out", "has 30 bytes", "job allows 29")


@pytest.mark.parametrize("claimed", [(), (ReportedFile(FILE, 0.0, "", error="not found"),)])
def test_an_optional_output_may_be_absent(claimed: tuple[ReportedFile, ...]) -> None:
    judgement = judged(outputs=(Output("out", 100, optional=True),), uploads=(), claimed=claimed)
    assert judgement.event is Event.SUCCEEDED


def test_an_optional_output_the_client_claims_must_be_here() -> None:
    judgement = judged(outputs=(Output("out", 100, optional=True),), uploads=())
    assert not missing(judgement.reason, f"output out ({FILE})", "not on the server")


def test_the_second_output_is_looked_for_under_its_own_name() -> None:
    judgement = judged(outputs=(Output("out", 100), Output("log", 50)))
    assert not missing(judgement.reason, "output log", "not produced", "50 bytes")


def test_states_are_those_of_the_codec() -> None:
    assert outcome.STATE_UPLOADED == messages.STATE_UPLOADED
    assert outcome.STATE_ABORTED == messages.STATE_ABORTED
    judgement = judged(state=messages.STATE_ABORTED, exit_status=203)
    assert judgement.event is Event.USER_ABORTED
