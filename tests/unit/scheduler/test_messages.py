"""What a volunteer is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.refusals import RefusalCode
from domain.units import Seconds
from scheduler.admission import Admission, HostCase
from scheduler.messages import about_host, counts_as_empty, kept_of, why_no_work
from tests.builders import a_host, a_volunteer

FIVE_MINUTES = Seconds(300.0)
C = RefusalCode


def test_the_most_frequent_reasons_come_first_and_three_are_enough() -> None:
    """In the words of the volunteers' pages, not those for operators."""
    reasons = {
        C.DISK: (1, "needs 9 GB of disk, this computer offers 1 GB"),
        C.MEMORY: (5, "needs 4 GB of memory, this computer offers 2 GB"),
        C.TOO_SLOW: (2, "would take 9 days, 7 are allowed"),
        C.CPUS: (1, "needs 8 CPUs, this computer offers 2"),
    }
    assert [message.text for message in why_no_work(reasons, FIVE_MINUTES)] == [
        "No work sent. The jobs that wait need more memory than the client may use.",
        "The jobs that wait could not be back in time.",
        "The jobs that wait need more disk than the client may use.",
        "Your client may ask again in 5 min.",
    ]


def test_no_reason_is_made_up() -> None:
    texts = [message.text for message in why_no_work({}, FIVE_MINUTES)]
    assert texts == ["No work sent.", "Your client may ask again in 5 min."]
    assert kept_of({}) == ()


@pytest.mark.parametrize("code", [C.NO_WORK_WANTED, C.NO_NEW_TASKS])
def test_what_the_client_knows_already_is_not_said(code: RefusalCode) -> None:
    assert why_no_work({code: (1, "of its own will")}, FIVE_MINUTES) == ()


def test_only_a_host_that_runs_nothing_gets_an_important_message() -> None:
    reasons = {C.NO_APP_VERSION: (1, "no program for windows_x86_64")}
    assert [why_no_work(reasons, FIVE_MINUTES, unrunnable=it)[0].priority for it in (True, False)] == ["high", "low"]


def test_a_computer_that_got_a_new_record_is_told_why() -> None:
    admission = Admission(a_volunteer(), a_host(), HostCase.CLONE, "host 7 sent serial number 3, 8 was seen before")
    [message] = about_host(admission)
    assert "host 1" in message.text and "serial number 3" in message.text
    assert about_host(Admission(a_volunteer(), a_host(), HostCase.KNOWN, "host 1")) == ()


def test_the_database_is_worth_a_look_unless_the_computer_is_the_reason() -> None:
    assert counts_as_empty({})
    assert counts_as_empty({C.MEMORY: (1, ""), C.DAILY_QUOTA: (1, "")})
    assert not counts_as_empty({C.IN_PROGRESS_LIMIT: (1, ""), C.NO_APP_VERSION: (2, "")})
    assert not counts_as_empty({C.NO_GPU: (1, "")})


@given(st.dictionaries(st.sampled_from(list(C)), st.tuples(st.integers(1, 9), st.text(max_size=20))))
def test_there_are_never_more_than_four_lines(reasons: dict[RefusalCode, tuple[int, str]]) -> None:
    assert len(why_no_work(reasons, FIVE_MINUTES)) <= 4
