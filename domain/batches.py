"""Submitters, accounts and batches. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.units import AccountId, AppId, BatchId, Instant, Seconds, SubmitterId


class QoS(StrEnum):
    """What a batch is promised."""

    THROUGHPUT = "throughput"  # a fixed latency bound per job, no end of the batch in sight
    LONG_DEADLINE = "long_deadline"  # longer than almost every host's turnaround
    AFAP = "afap"  # as fast as possible
    SHORT_DEADLINE = "short_deadline"  # an instant given by the submitter


class BatchState(StrEnum):
    ACTIVE = "active"
    COMPLETE = "complete"  # every job is valid or failed
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Account:
    """A node of the tree that shares are divided in."""

    account_id: AccountId
    name: str
    parent_id: AccountId | None = None
    shares: float = 1.0


@dataclass(frozen=True, slots=True)
class Submitter:
    """Who submits batches. `logical_at` is the submitter's logical start time for the next batch."""

    submitter_id: SubmitterId
    name: str
    account_id: AccountId
    shares: float = 1.0
    logical_at: Instant = Instant(0.0)


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """How far a batch is. `unsent` and `in_progress` count instances, the jobs_* count jobs.

    `retries` counts instances that are over and unusable; `deadlines_missed` those that came back
    after due_at or timed out.
    """

    jobs_total: int = 0
    jobs_validated: int = 0
    jobs_failed: int = 0
    unsent: int = 0
    in_progress: int = 0
    retries: int = 0
    sent: int = 0
    reported: int = 0
    deadlines_missed: int = 0

    @property
    def jobs_open(self) -> int:
        return self.jobs_total - self.jobs_validated - self.jobs_failed


@dataclass(frozen=True, slots=True)
class Batch:
    """Many jobs of one app, in one order, with one promise.

    `order_tier` and `order_key` are the place in the queue, smaller first. `logical_end_at` is the
    batch's virtual finish; `completion_at` the published forecast C(B), None until there is one.
    """

    batch_id: BatchId
    submitter_id: SubmitterId
    account_id: AccountId
    app_id: AppId
    name: str
    qos: QoS
    state: BatchState
    created_at: Instant
    order_tier: int
    order_key: float
    logical_end_at: Instant
    deadline_at: Instant | None = None  # short_deadline only
    completion_at: Instant | None = None
    median_turnaround_s: Seconds | None = None
    last_first_dispatch_at: Instant | None = None  # latest dispatch of a job's first instance
    user_priority: int = 0
    ended_at: Instant | None = None
    counts: BatchCounts = BatchCounts()
