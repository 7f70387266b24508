"""Does an instance take this step, and what follows from it? Pure; the machine itself does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from domain.errors import IllegalTransitionError
from domain.havs import HavEventKind
from domain.jobs import InstanceState
from domain.units import InstanceId
from lifecycle.states import TRANSITIONS, Event, Instruction

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
    """Where an event leads, and what services do because of it."""

    state: InstanceState
    instructions: tuple[Instruction, ...]


_STEPS: Mapping[tuple[InstanceState, Event], Step] = MappingProxyType(
    {key: Step(*step) for key, step in TRANSITIONS.items()}
)


def advance(state: InstanceState, event: Event, *, instance_id: InstanceId | None = None) -> Step:
    """The step `event` makes from `state`. Raises IllegalTransitionError when there is none.

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
    """Whether `advance` would take the step; a repeated report, for one, is no step and is only acknowledged.

    >>> allows(InstanceState.TIMED_OUT, Event.SUCCEEDED), allows(InstanceState.VALID, Event.SUCCEEDED)
    (True, False)
    """
    return (state, event) in TRANSITIONS


def host_record(instructions: Iterable[Instruction]) -> HavEventKind | None:
    """What the instructions enter in the statistics of the instance's (host, app version).

    >>> host_record(advance(InstanceState.IN_PROGRESS, Event.FAILED).instructions)
    <HavEventKind.ERROR: 'error'>
    """
    for instruction in instructions:
        kind = _RECORDS.get(instruction)
        if kind is not None:
            return kind
    return None
