"""The table of states: the instants of each state, and the named sets of states."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import lifecycle.states
from domain.batches import BatchState
from domain.errors import IllegalTransitionError
from domain.havs import HavEventKind
from domain.jobs import InstanceState, JobState
from domain.units import InstanceId
from domain.views import SimulationState
from lifecycle.states import (
    JOB_ERRORS,
    LOST,
    OUTSTANDING,
    OVER,
    RETRY_CAUSES,
    SHAPES,
    TRANSITIONS,
    USABLE,
    Event,
    Instruction,
    StateShape,
    advance,
    allows,
    host_record,
)
from tests.facts import states

S = InstanceState
REPORTS = {Event.SUCCEEDED, Event.FAILED, Event.USER_ABORTED, Event.SERVER_ABORTED, Event.UNSTARTED}


def reachable_shapes() -> dict[InstanceState, set[tuple[bool, bool]]]:
    """Every (sent, reported) an instance can have in each state, found by following the table from unsent."""
    found: dict[InstanceState, set[tuple[bool, bool]]] = {state: set() for state in S}
    walk = [(S.UNSENT, False, False)]
    while walk:
        state, sent, reported = walk.pop()
        if (sent, reported) in found[state]:
            continue
        found[state].add((sent, reported))
        for (source, event), (target, _) in TRANSITIONS.items():
            if source is state:
                walk.append((target, sent or event is Event.SENT, reported or event in REPORTS))
    return found


def test_shapes_are_what_the_table_leads_to() -> None:
    expected = {}
    for state, pairs in reachable_shapes().items():
        (sent,) = {pair[0] for pair in pairs}
        reports = {pair[1] for pair in pairs}
        expected[state] = StateShape(sent, reports.pop() if len(reports) == 1 else None)
    assert dict(SHAPES) == expected


def test_every_state_and_event_and_instruction_occurs() -> None:
    assert {target for target, _ in TRANSITIONS.values()} | {S.UNSENT} == set(S)
    assert {event for _, event in TRANSITIONS} == set(Event)
    assert {instruction for _, done in TRANSITIONS.values() for instruction in done} == set(Instruction)


def test_states_are_divided_into_outstanding_and_over() -> None:
    assert {S.UNSENT, S.IN_PROGRESS} == OUTSTANDING
    assert set(S) - OUTSTANDING == OVER
    assert {S.REPORTED, S.INCONCLUSIVE, S.VALID} == USABLE


@pytest.mark.parametrize(
    ("state", "retry_cause", "job_error", "lost"),
    [
        (S.UNSENT, False, False, False),
        (S.IN_PROGRESS, False, False, False),
        (S.REPORTED, False, False, False),
        (S.INCONCLUSIVE, False, False, False),
        (S.VALID, False, False, False),
        (S.INVALID, True, True, False),
        (S.FAILED, True, True, False),
        (S.TIMED_OUT, True, False, True),
        (S.ABORTED, True, False, True),
        (S.CANCELLED, False, False, False),
        (S.TOO_LATE, True, False, False),
    ],
)
def test_what_counts_as_retry_job_error_and_loss(
    state: InstanceState, retry_cause: bool, job_error: bool, lost: bool
) -> None:
    assert (state in RETRY_CAUSES) is retry_cause
    assert (state in JOB_ERRORS) is job_error
    assert (state in LOST) is lost


def test_job_errors_are_retry_causes() -> None:
    assert JOB_ERRORS < RETRY_CAUSES


def test_steps_that_change_an_open_job_settle_it() -> None:
    verdicts = {Event.VALIDATED, Event.REJECTED, Event.UNDECIDED, Event.TOO_LATE, Event.NOT_NEEDED}  # by settling
    for (source, event), (target, instructions) in TRANSITIONS.items():
        if event in verdicts:
            continue
        changed = (source in USABLE) != (target in USABLE) or (source in OUTSTANDING) != (target in OUTSTANDING)
        assert (Instruction.SETTLE_JOB in instructions) is changed, (source, event)


def test_verdicts_and_cancelled_instances_are_final() -> None:
    sources = {source for source, _ in TRANSITIONS}
    assert set(S) - sources == {S.VALID, S.INVALID, S.CANCELLED, S.TOO_LATE}


E = Event


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
    with states(IllegalTransitionError, "instance 41:", "valid", "event sent"):
        advance(S.VALID, E.SENT, instance_id=InstanceId(41))
    with states(IllegalTransitionError, "an instance:", "valid", "event sent"):
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


# ---- SQL

ROOT = Path(str(files("store")))
SQL = [*(ROOT / "sql").glob("*.sql"), *(ROOT / "migrations").glob("*.sql")]
STATES = re.compile(r"\bstate (?:NOT )?IN \(([^)]*)\)")
STATE = re.compile(r"\bstate (?:=|<>) '(\w+)'")
NAMED = {
    name: value for name, value in vars(lifecycle.states).items() if name.isupper() and isinstance(value, frozenset)
}


def sets_of_states() -> list[frozenset[str]]:
    """The named sets, all states of each kind, and the states with and without a report."""
    whole = [frozenset(kind) for kind in (InstanceState, JobState, BatchState, SimulationState)]
    reported = [frozenset(state for state in S if SHAPES[state].reported is told) for told in (True, False)]
    return [*NAMED.values(), *whole, *reported, frozenset(JobState) - {JobState.OPEN}]


def test_sets_of_states_have_different_names() -> None:
    assert len(set(NAMED.values())) == len(NAMED) > 10


@pytest.mark.parametrize("file", SQL, ids=lambda file: file.name)
def test_sql_uses_named_sets_of_states(file: Path) -> None:
    known = sets_of_states()
    for literals in STATES.findall(file.read_text()):
        states = frozenset(re.findall(r"'(\w+)'", literals))
        assert states in known, f"{file.name}: name {sorted(states)} in lifecycle/states.py"


@pytest.mark.parametrize("file", SQL, ids=lambda file: file.name)
def test_sql_names_states_that_exist(file: Path) -> None:
    known = {*InstanceState, *JobState, *BatchState, *SimulationState}
    assert set(STATE.findall(file.read_text())) <= known


def test_sets_of_states_are_found_in_sql() -> None:
    texts = [file.read_text() for file in SQL]
    assert sum(len(STATES.findall(text)) for text in texts) > 20
    assert sum(len(STATE.findall(text)) for text in texts) > 100
