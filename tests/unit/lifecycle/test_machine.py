"""One step of an instance: where it leads, and how a wrong one is refused."""

from __future__ import annotations

import pytest

from domain.errors import IllegalTransitionError
from domain.havs import HavEventKind
from domain.jobs import InstanceState
from domain.units import InstanceId
from lifecycle.machine import advance, allows, host_record
from lifecycle.states import Event, Instruction

S, E = InstanceState, Event


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        (S.UNSENT, E.SENT, S.IN_PROGRESS),
        (S.UNSENT, E.NOT_NEEDED, S.CANCELLED),
        (S.IN_PROGRESS, E.SUCCEEDED, S.REPORTED),
        (S.IN_PROGRESS, E.FAILED, S.FAILED),
        (S.IN_PROGRESS, E.DETACHED, S.ABORTED),
        (S.IN_PROGRESS, E.UNSTARTED, S.ABORTED),
        (S.IN_PROGRESS, E.TIMED_OUT, S.TIMED_OUT),
        (S.TIMED_OUT, E.FAILED, S.FAILED),
        (S.TIMED_OUT, E.USER_ABORTED, S.ABORTED),
        (S.REPORTED, E.UNDECIDED, S.INCONCLUSIVE),
        (S.INCONCLUSIVE, E.VALIDATED, S.VALID),
        (S.INCONCLUSIVE, E.REJECTED, S.INVALID),
        (S.INCONCLUSIVE, E.TOO_LATE, S.TOO_LATE),
    ],
)
def test_an_event_leads_to_its_state(state: InstanceState, event: Event, expected: InstanceState) -> None:
    assert advance(state, event).state is expected


@pytest.mark.parametrize("state", [S.TIMED_OUT, S.ABORTED, S.FAILED])
def test_a_late_success_is_welcome_and_settles_the_job_again(state: InstanceState) -> None:
    assert advance(state, E.SUCCEEDED) == (S.REPORTED, (Instruction.SETTLE_JOB,))


def test_an_illegal_step_names_instance_state_and_event() -> None:
    with pytest.raises(IllegalTransitionError, match=r"instance 41: valid has no step for the event sent"):
        advance(S.VALID, E.SENT, instance_id=InstanceId(41))
    with pytest.raises(IllegalTransitionError, match=r"an instance: valid has no step for the event sent"):
        advance(S.VALID, E.SENT)


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("event", list(E))
def test_the_machine_is_total(state: InstanceState, event: Event) -> None:
    if allows(state, event):
        assert advance(state, event).state in S
    else:
        with pytest.raises(IllegalTransitionError):
            advance(state, event)


def test_a_repeated_report_is_no_step() -> None:
    assert not allows(S.REPORTED, E.SUCCEEDED)
    assert not allows(S.FAILED, E.FAILED)
    assert not allows(S.ABORTED, E.USER_ABORTED)


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        (S.REPORTED, E.VALIDATED, HavEventKind.VALID),
        (S.REPORTED, E.REJECTED, HavEventKind.INVALID),
        (S.IN_PROGRESS, E.FAILED, HavEventKind.ERROR),
        (S.IN_PROGRESS, E.TIMED_OUT, HavEventKind.TIMED_OUT),
        (S.IN_PROGRESS, E.UNSTARTED, HavEventKind.TIMED_OUT),
        (S.IN_PROGRESS, E.USER_ABORTED, HavEventKind.LOST),
        (S.IN_PROGRESS, E.SERVER_ABORTED, None),
        (S.IN_PROGRESS, E.DETACHED, HavEventKind.LOST),
        (S.REPORTED, E.TOO_LATE, None),
    ],
)
def test_only_what_the_host_did_enters_its_record(
    state: InstanceState, event: Event, expected: HavEventKind | None
) -> None:
    assert host_record(advance(state, event).instructions) is expected
