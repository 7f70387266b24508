"""Submitters, accounts and batches. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from domain.ordering import ServiceLevel
from domain.quick import quick_dataclass
from domain.units import AccountId, AppId, BatchId, Instant, Seconds, SubmitterId

LEAST_VALIDATED_JOBS = 5  # an AFAP batch has no estimate before this number of validated jobs
LEAST_VALIDATED_FRACTION = 0.02  # or, if that is more, before this share of its jobs


class QoS(StrEnum):
    """The quality of service of a batch."""

    THROUGHPUT = "throughput"  # a fixed delay bound per job, no planned end of the batch
    LONG_DEADLINE = "long_deadline"  # the deadline exceeds the turnaround of almost every host
    AFAP = "afap"  # as fast as possible
    SHORT_DEADLINE = "short_deadline"  # the submitter sets the deadline

    @property
    def words(self) -> str:
        return kind_in_words(self.value)


def kind_in_words(kind: str) -> str:
    """Return a kind of batch, or another figure's key, as people read it.

    >>> kind_in_words("afap"), kind_in_words("short_deadline")
    ('AFAP', 'short deadline')
    """
    return "AFAP" if kind == "afap" else kind.replace("_", " ")


# For comparisons in every request: an enum lookup takes 75 ns in Python 3.11.
THROUGHPUT: Final = QoS.THROUGHPUT
LONG_DEADLINE: Final = QoS.LONG_DEADLINE
AFAP: Final = QoS.AFAP
SHORT_DEADLINE: Final = QoS.SHORT_DEADLINE


class BatchState(StrEnum):
    ACTIVE = "active"
    COMPLETE = "complete"  # every job is valid or failed
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Account:
    """A node of the share tree. `permissions` apply to all submitters at or below it."""

    account_id: AccountId
    name: str
    parent_id: AccountId | None = None
    shares: float = 1.0
    permissions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submitter:
    """A user who submits batches. `logical_at` is the logical start time of the submitter's next batch."""

    submitter_id: SubmitterId
    name: str
    account_id: AccountId
    shares: float = 1.0
    logical_at: Instant = Instant(0.0)
    permissions: tuple[str, ...] = ()


class TreeKind(StrEnum):
    ACCOUNT = "account"
    SUBMITTER = "submitter"
    MEMBERSHIP = "membership"


@dataclass(frozen=True, slots=True)
class TreeRow:
    """An account below `parent` (empty: at the top), a submitter of the account `parent`, or a submitter's membership
    in a further account `parent`.
    """

    kind: TreeKind
    name: str
    parent: str
    shares: float
    permissions: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.parent if self.kind is TreeKind.MEMBERSHIP else ""


@quick_dataclass(frozen=True, slots=True)
class BatchCounts:
    """A batch's counters. `unsent` and `in_progress` count instances, jobs_* count jobs.

    `retries` counts finished unusable instances, `deadlines_missed` those returned after due_at or timed out.
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


@quick_dataclass(frozen=True, slots=True)
class Batch:
    """Jobs of one app with the same quality of service and one common place in the order.

    `order_tier` and `order_key` are the place in the queue, smaller first. `logical_end_at` is the batch's virtual
    finish. `completion_at` is the published forecast C(B), None before the first one; users see `completion_q50_at` and
    `completion_q90_at` ("about", "at the latest"). `hold` names the limits that block the batch (None: not blocked).
    Its counter `sent` may reach `sent_most` until the next ordering. `unpaid` work is not charged and goes only to
    hosts without other suitable work. `job_pe`: processor equivalents of a job.
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
    last_first_dispatch_at: Instant | None = None  # latest dispatch of the first instance of any job
    user_priority: int = 0
    ended_at: Instant | None = None
    counts: BatchCounts = BatchCounts()
    completion_q50_at: Instant | None = None
    completion_q90_at: Instant | None = None
    queue: str = "normal"
    level: ServiceLevel = ServiceLevel.NORMAL
    hold: str | None = None
    sent_most: int | None = None
    unpaid: bool = False
    job_pe: float = 1.0


FIRST_PLACE = (-(2**31), -math.inf, BatchId(0))  # before all batches in the order


UNNUMBERED = BatchId(1 << 62)  # a batch's id before its row is written: after batches at the same place


def place_of(batch: Batch) -> tuple[int, float, BatchId]:
    """Return the key by which batches are in order."""
    return batch.order_tier, batch.order_key, batch.batch_id


def first_from(qos: QoS, deadline_at: Instant | None, *, within_s: float) -> Instant:
    """Return after which instant a batch precedes deferrable work: `within_s` before its deadline (0: never).

    An AFAP batch always does.
    """
    if qos is AFAP:
        return Instant(-math.inf)
    return Instant(math.inf) if deadline_at is None or within_s <= 0.0 else Instant(deadline_at - within_s)


def goes_first(batch: Batch, *, within_s: float, now: Instant) -> bool:
    """Return whether a batch precedes deferrable work: it is AFAP or its deadline is within `within_s` (0: never).

    >>> batch = Batch(1, 1, 1, 1, "b", QoS.SHORT_DEADLINE, BatchState.ACTIVE, Instant(0.0), 0, 0.0, Instant(0.0),
    ...               deadline_at=Instant(7200.0))
    >>> [goes_first(batch, within_s=7200.0, now=Instant(now)) for now in (0.0, 1.0)]
    [False, True]
    >>> goes_first(batch, within_s=0.0, now=Instant(7201.0))
    False
    """
    return first_from(batch.qos, batch.deadline_at, within_s=within_s) < now


def is_late(deadline_at: Instant | None, now: Instant) -> bool:
    """Return whether a batch's deadline has passed. Of the batches that are sent first, late ones come last: those that
    can still be in time gain more (decision 84).
    """
    return deadline_at is not None and deadline_at <= now


def complete_at(batch: Batch, bound_s: Seconds | None) -> Instant | None:
    """Return the target completion time C, or None for throughput batches and for AFAP batches without an estimate.

    Short deadline: the submitter's deadline. Long deadline: max(C(B), latest first dispatch + D), using submission + D
    for C(B) before a forecast is published. `bound_s` is D; if it is None (jobs not read yet), only C(B) counts. AFAP:
    the published C(B), available after max(5, 2 % of jobs) validated jobs.

    >>> counts = BatchCounts(jobs_total=1000, jobs_validated=19)
    >>> batch = Batch(1, 1, 1, 1, "b", QoS.AFAP, BatchState.ACTIVE, Instant(0.0), 0, 0.0, Instant(0.0),
    ...               completion_at=Instant(9.0), counts=counts)
    >>> complete_at(batch, None)
    """
    qos = batch.qos
    if qos is THROUGHPUT:
        return None
    if qos is SHORT_DEADLINE:
        return batch.deadline_at
    if qos is LONG_DEADLINE:
        return batch.completion_at if bound_s is None else _long_deadline_at(batch, bound_s)
    if qos is AFAP:
        least = max(LEAST_VALIDATED_JOBS, LEAST_VALIDATED_FRACTION * batch.counts.jobs_total)
        return batch.completion_at if batch.counts.jobs_validated >= least else None
    assert_never(qos)


def _long_deadline_at(batch: Batch, bound_s: Seconds) -> Instant:
    """Return the forecast, but at least D after the latest first dispatch (submission if nothing was sent)."""
    dispatched_at = batch.created_at if batch.last_first_dispatch_at is None else batch.last_first_dispatch_at
    promised_at = Instant(dispatched_at + bound_s)
    return promised_at if batch.completion_at is None else max(batch.completion_at, promised_at)
