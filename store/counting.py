"""What one step of an instance or a job adds to the counters of its batch. Pure.

Both stores change their counters by these functions, in the transaction of the step; `instance_counts` says
what the counters must then be, so that a check can recount them.
"""

from __future__ import annotations

from domain.batches import BatchCounts
from domain.jobs import InstanceState, JobState
from domain.units import Instant

# Over and unusable: each of them is one retry of its job.
UNUSABLE = frozenset(
    (
        InstanceState.INVALID,
        InstanceState.FAILED,
        InstanceState.TIMED_OUT,
        InstanceState.ABORTED,
        InstanceState.TOO_LATE,
    )
)


def step_counts(
    from_state: InstanceState | None,
    to_state: InstanceState,
    *,
    due_at: Instant | None = None,
    reported_before_at: Instant | None = None,
    reported_at: Instant | None = None,
) -> BatchCounts:
    """What to add when an instance goes from one state to another; `from_state` None: it is made.

    `reported_at` is given with a step in which its host reports it, `reported_before_at` is what its row
    said before the step. An instance that times out and is reported late misses one deadline, not two.

    >>> step_counts(InstanceState.UNSENT, InstanceState.IN_PROGRESS)
    BatchCounts(jobs_total=0, jobs_validated=0, jobs_failed=0, unsent=-1, in_progress=1, retries=0, \
sent=1, reported=0, deadlines_missed=0)
    """
    reported_after_at = reported_before_at if reported_at is None else reported_at
    return BatchCounts(
        unsent=(to_state is InstanceState.UNSENT) - (from_state is InstanceState.UNSENT),
        in_progress=(to_state is InstanceState.IN_PROGRESS) - (from_state is InstanceState.IN_PROGRESS),
        retries=(to_state in UNUSABLE) - (from_state in UNUSABLE),
        sent=int(to_state is InstanceState.IN_PROGRESS),
        reported=(reported_after_at is not None) - (reported_before_at is not None),
        deadlines_missed=_missed(to_state, due_at, reported_after_at) - _missed(from_state, due_at, reported_before_at),
    )


def job_counts(from_state: JobState, to_state: JobState) -> BatchCounts:
    """What to add when a job goes from one state to another.

    >>> job_counts(JobState.OPEN, JobState.VALID).jobs_validated
    1
    """
    return BatchCounts(
        jobs_validated=(to_state is JobState.VALID) - (from_state is JobState.VALID),
        jobs_failed=(to_state is JobState.FAILED) - (from_state is JobState.FAILED),
    )


def added(counts: BatchCounts, change: BatchCounts) -> BatchCounts:
    """The sum of both, field by field.

    >>> added(BatchCounts(unsent=3), BatchCounts(unsent=-1, sent=1)).unsent
    2
    """
    return BatchCounts(
        counts.jobs_total + change.jobs_total,
        counts.jobs_validated + change.jobs_validated,
        counts.jobs_failed + change.jobs_failed,
        counts.unsent + change.unsent,
        counts.in_progress + change.in_progress,
        counts.retries + change.retries,
        counts.sent + change.sent,
        counts.reported + change.reported,
        counts.deadlines_missed + change.deadlines_missed,
    )


def instance_counts(
    state: InstanceState, *, sent_at: Instant | None, due_at: Instant | None, reported_at: Instant | None
) -> BatchCounts:
    """What one instance is counted as, from what its row says now: the sum of all its steps.

    >>> instance_counts(InstanceState.FAILED, sent_at=1.0, due_at=5.0, reported_at=6.0).deadlines_missed
    1
    """
    return BatchCounts(
        unsent=int(state is InstanceState.UNSENT),
        in_progress=int(state is InstanceState.IN_PROGRESS),
        retries=int(state in UNUSABLE),
        sent=int(sent_at is not None),
        reported=int(reported_at is not None),
        deadlines_missed=int(_missed(state, due_at, reported_at)),
    )


def _missed(state: InstanceState | None, due_at: Instant | None, reported_at: Instant | None) -> bool:
    late = reported_at is not None and due_at is not None and reported_at > due_at
    return late or state is InstanceState.TIMED_OUT
