"""Computes how a step of an instance or a job changes its batch's counters. Pure.

Instances are counted by the state of their rows, and a step adds the difference. Both stores use these functions.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import add, attrgetter, sub
from typing import TypeAlias

from domain.batches import BatchCounts
from domain.jobs import InstanceState, JobState
from domain.quick import quick_dataclass
from domain.units import Instant
from lifecycle.states import RETRY_CAUSES

_numbers = attrgetter(*[one.name for one in fields(BatchCounts)])
Kind: TypeAlias = tuple[InstanceState, bool, bool, bool]  # instances of a kind count the same


@quick_dataclass(frozen=True, slots=True)
class Counted:
    """The columns of an instance that affect the counters."""

    state: InstanceState
    sent_at: Instant | None = None
    due_at: Instant | None = None
    reported_at: Instant | None = None


def change_counts(before: Counted | None, after: Counted) -> BatchCounts:
    """Return how the counters change when an instance changes to `after`. `before` None: it is created.

    >>> change_counts(Counted(InstanceState.UNSENT), Counted(InstanceState.CANCELLED)).unsent
    -1
    """
    return _difference(None if before is None else _kind(before), _kind(after))


def _kind(instance: Counted) -> Kind:
    """Return an instance's state and whether it was sent, reported, and late."""
    reported_at, due_at = instance.reported_at, instance.due_at
    late = reported_at is not None and due_at is not None and reported_at > due_at
    return (instance.state, instance.sent_at is not None, reported_at is not None, late)


@cache
def _counts(kind: Kind) -> BatchCounts:
    state, sent, reported, late = kind
    return BatchCounts(
        unsent=int(state is InstanceState.UNSENT),
        in_progress=int(state is InstanceState.IN_PROGRESS),
        retries=int(state in RETRY_CAUSES),
        sent=int(sent),
        reported=int(reported),
        deadlines_missed=int(late or state is InstanceState.TIMED_OUT),
    )


@cache
def _difference(before: Kind | None, after: Kind) -> BatchCounts:
    new = _counts(after)
    if before is None:
        return new
    return BatchCounts(*map(sub, _numbers(new), _numbers(_counts(before))))


@cache
def job_counts(from_state: JobState, to_state: JobState) -> BatchCounts:
    """Return how the counters change when a job changes its state.

    >>> job_counts(JobState.OPEN, JobState.VALID).jobs_validated
    1
    """
    return BatchCounts(
        jobs_validated=(to_state is JobState.VALID) - (from_state is JobState.VALID),
        jobs_failed=(to_state is JobState.FAILED) - (from_state is JobState.FAILED),
    )


def added(counts: BatchCounts, change: BatchCounts) -> BatchCounts:
    """Add the change to the counters, field by field.

    >>> added(BatchCounts(unsent=3), BatchCounts(unsent=-1, sent=1)).unsent
    2
    """
    return BatchCounts(*map(add, _numbers(counts), _numbers(change)))
