"""The states of an instance and all transitions in one table: (state, event) -> (state, instructions). Pure.

`advance` rejects steps that are not in TRANSITIONS. It changes nothing; services carry out the instructions that it
returns. `docs/lifecycle.md` and its diagram are generated from this table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from domain.errors import IllegalTransitionError
from domain.havs import HavEventKind
from domain.jobs import InstanceState
from domain.units import InstanceId


class Event(StrEnum):
    """An event in the life cycle of an instance."""

    SENT = "sent"  # assigned to a host in a reply
    NOT_NEEDED = "not_needed"  # its job has ended, or has enough instances without it
    SUCCEEDED = "succeeded"  # reported, and all outputs are on the server
    FAILED = "failed"  # reported an error, or an output is missing
    USER_ABORTED = "user_aborted"
    SERVER_ABORTED = "server_aborted"  # the client confirms an abort of an ended job; or a ban ends it
    UNSTARTED = "unstarted"  # given up by the client at its due date, never started; or lost, and too late to resend
    DETACHED = "detached"  # the host lost all its instances
    TIMED_OUT = "timed_out"  # due date and grace period passed without a report
    VALIDATED = "validated"  # agrees with, or is, the canonical result
    REJECTED = "rejected"  # disagrees with the canonical result, or is unreadable
    UNDECIDED = "undecided"  # compared, but too few results agree
    TOO_LATE = "too_late"  # its job ended without a result to compare with


class Instruction(StrEnum):
    """An action that a service must perform in the transaction of a step."""

    SETTLE_JOB = "settle_job"  # settle the job
    RECORD_VALID = "record_valid"  # in the statistics of its (host, app version)
    RECORD_INVALID = "record_invalid"
    RECORD_ERROR = "record_error"
    RECORD_TIME_OUT = "record_time_out"
    RECORD_LOSS = "record_loss"  # only reduces the host's daily quota


S, E, DO = InstanceState, Event, Instruction

# A user's abort and a detach only reduce the host's daily quota; an abort by the server has no effect. A success after
# a timeout, an abort or an error undoes the effect on the job: the instance is usable again and the job is settled
# again. A client restored from a snapshot may report a success after an error; the error stays in the host's
# statistics. After a timeout, a report without success does not affect the job, which was already settled.
TRANSITIONS: Mapping[tuple[InstanceState, Event], tuple[InstanceState, tuple[Instruction, ...]]] = MappingProxyType(
    {
        (S.UNSENT, E.SENT): (S.IN_PROGRESS, ()),
        (S.UNSENT, E.NOT_NEEDED): (S.CANCELLED, ()),
        (S.IN_PROGRESS, E.SUCCEEDED): (S.REPORTED, (DO.SETTLE_JOB,)),
        (S.IN_PROGRESS, E.FAILED): (S.FAILED, (DO.SETTLE_JOB, DO.RECORD_ERROR)),
        (S.IN_PROGRESS, E.USER_ABORTED): (S.ABORTED, (DO.SETTLE_JOB, DO.RECORD_LOSS)),
        (S.IN_PROGRESS, E.SERVER_ABORTED): (S.ABORTED, (DO.SETTLE_JOB,)),
        (S.IN_PROGRESS, E.UNSTARTED): (S.ABORTED, (DO.SETTLE_JOB, DO.RECORD_TIME_OUT)),
        (S.IN_PROGRESS, E.DETACHED): (S.ABORTED, (DO.SETTLE_JOB, DO.RECORD_LOSS)),
        (S.IN_PROGRESS, E.TIMED_OUT): (S.TIMED_OUT, (DO.SETTLE_JOB, DO.RECORD_TIME_OUT)),
        (S.TIMED_OUT, E.SUCCEEDED): (S.REPORTED, (DO.SETTLE_JOB,)),
        (S.TIMED_OUT, E.FAILED): (S.FAILED, (DO.RECORD_ERROR,)),
        (S.TIMED_OUT, E.USER_ABORTED): (S.ABORTED, ()),
        (S.TIMED_OUT, E.SERVER_ABORTED): (S.ABORTED, ()),
        (S.TIMED_OUT, E.UNSTARTED): (S.ABORTED, ()),
        (S.ABORTED, E.SUCCEEDED): (S.REPORTED, (DO.SETTLE_JOB,)),
        (S.FAILED, E.SUCCEEDED): (S.REPORTED, (DO.SETTLE_JOB,)),
        (S.REPORTED, E.VALIDATED): (S.VALID, (DO.RECORD_VALID,)),
        (S.REPORTED, E.REJECTED): (S.INVALID, (DO.RECORD_INVALID,)),
        (S.REPORTED, E.UNDECIDED): (S.INCONCLUSIVE, ()),
        (S.REPORTED, E.TOO_LATE): (S.TOO_LATE, ()),
        (S.INCONCLUSIVE, E.VALIDATED): (S.VALID, (DO.RECORD_VALID,)),
        (S.INCONCLUSIVE, E.REJECTED): (S.INVALID, (DO.RECORD_INVALID,)),
        (S.INCONCLUSIVE, E.TOO_LATE): (S.TOO_LATE, ()),
    }
)

# ---- sets of states; Python code and SQL use only these, and tests/unit/lifecycle/test_states.py compares the SQL

ACCEPTS_OUTPUTS = frozenset(
    state for state, event in TRANSITIONS if event is E.SUCCEEDED
)  # because clients upload before they report
OUTSTANDING = frozenset({S.UNSENT, S.IN_PROGRESS})  # a result may still be expected
USABLE = frozenset({S.REPORTED, S.INCONCLUSIVE, S.VALID})
UNDECIDED = frozenset({S.REPORTED, S.INCONCLUSIVE})  # usable, but not validated yet
OVER = frozenset(S) - OUTSTANDING
RETRY_CAUSES = OVER - USABLE - {S.CANCELLED}  # counted in the job's `retries`; no host had a cancelled instance
JOB_ERRORS = frozenset({S.FAILED, S.INVALID})  # counted towards max_errors: reports only, never silence
LOST = frozenset({S.ABORTED, S.TIMED_OUT})  # counted towards lifecycle.max_lost_instances: no result
NOT_COUNTED = LOST | {S.CANCELLED}  # not counted towards max_instances
OF_USE = OUTSTANDING | USABLE  # may still count towards the quorum
SENT_OF_USE = OF_USE - {S.UNSENT}
NEVER_SENT = frozenset({S.UNSENT, S.CANCELLED})
NO_RESULT = NEVER_SENT | OUTSTANDING  # not ended by a host
SUCCEEDED = USABLE | {S.INVALID, S.TOO_LATE}  # reported as a success by its host
IN_TURNAROUNDS = SUCCEEDED | {S.TIMED_OUT}  # counted in host turnarounds for batch acceleration
OUTPUTS_MAY_COME = LOST | {S.IN_PROGRESS}
STILL_OUT = frozenset({S.IN_PROGRESS, S.TIMED_OUT})  # the host may still report it
IN_MEDIANS = STILL_OUT | {S.VALID}  # counted in a batch's median turnaround
HOST_FAILURES = JOB_ERRORS | {S.TIMED_OUT}  # listed as failures of the host
DECIDED = HOST_FAILURES | {S.VALID}  # tell whether the host works


@dataclass(frozen=True, slots=True)
class StateShape:
    """The timestamps that an instance has in a state. `reported` None: optional.

    `sent` means sent_at, due_at and the host, which are always set together.
    """

    sent: bool
    reported: bool | None


SHAPES: Mapping[InstanceState, StateShape] = MappingProxyType(
    {
        S.UNSENT: StateShape(sent=False, reported=False),
        S.IN_PROGRESS: StateShape(sent=True, reported=False),
        S.REPORTED: StateShape(sent=True, reported=True),
        S.INCONCLUSIVE: StateShape(sent=True, reported=True),
        S.VALID: StateShape(sent=True, reported=True),
        S.INVALID: StateShape(sent=True, reported=True),
        S.FAILED: StateShape(sent=True, reported=True),
        S.TIMED_OUT: StateShape(sent=True, reported=False),
        S.ABORTED: StateShape(sent=True, reported=None),  # a detached host does not report
        S.CANCELLED: StateShape(sent=False, reported=False),
        S.TOO_LATE: StateShape(sent=True, reported=True),
    }
)


# ---- taking a step

_RECORDS: Mapping[Instruction, HavEventKind] = MappingProxyType(
    {
        Instruction.RECORD_VALID: HavEventKind.VALID,
        Instruction.RECORD_INVALID: HavEventKind.INVALID,
        Instruction.RECORD_ERROR: HavEventKind.ERROR,
        Instruction.RECORD_TIME_OUT: HavEventKind.TIMED_OUT,
        Instruction.RECORD_LOSS: HavEventKind.LOST,
    }
)


class Step(NamedTuple):
    """The new state after an event, and the instructions."""

    state: InstanceState
    instructions: tuple[Instruction, ...]


_STEPS: Mapping[tuple[InstanceState, Event], Step] = MappingProxyType(
    {key: Step(*step) for key, step in TRANSITIONS.items()}
)


def advance(state: InstanceState, event: Event, *, instance_id: InstanceId | None = None) -> Step:
    """Return the step for `event` in `state`. Raises IllegalTransitionError if there is none.

    >>> advance(InstanceState.IN_PROGRESS, Event.SUCCEEDED).state
    <InstanceState.REPORTED: 'reported'>
    >>> advance(InstanceState.VALID, Event.SENT, instance_id=InstanceId(7))
    Traceback (most recent call last):
    domain.errors.IllegalTransitionError: instance 7: valid has no step for the event sent
    """
    step = _STEPS.get((state, event))
    if step is None:
        which = "an instance" if instance_id is None else f"instance {instance_id}"
        raise IllegalTransitionError(f"{which}: {state} has no step for the event {event}")
    return step


def allows(state: InstanceState, event: Event) -> bool:
    """Return whether `advance` would accept the event. Repeated reports, for example, are only acknowledged.

    >>> allows(InstanceState.TIMED_OUT, Event.SUCCEEDED), allows(InstanceState.VALID, Event.SUCCEEDED)
    (True, False)
    """
    return (state, event) in TRANSITIONS


def host_record(instructions: Iterable[Instruction]) -> HavEventKind | None:
    """Return the event that the instructions record in the statistics of the instance's (host, app version).

    >>> host_record(advance(InstanceState.IN_PROGRESS, Event.FAILED).instructions)
    <HavEventKind.ERROR: 'error'>
    """
    for instruction in instructions:
        kind = _RECORDS.get(instruction)
        if kind is not None:
            return kind
    return None
