"""Logical end times of batches: how batches charge a submitter's logical time, with corrections and refunds. Pure.

A batch's logical end time (LET) is when it would end if it had the whole pool, starting at its submitter's logical
time. Batches with a smaller LET go first. It defines an order and is not a forecast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import InvalidInputError
from domain.ordered_work import LogicalCorrection, OrderedBatch, OrderNotes
from domain.ordering import QueueClock
from domain.units import Flop, FlopPerSecond, Instant, Seconds

UNKNOWN_POOL_FLOP_PER_S = FlopPerSecond(1e12)  # used while no host is known; only the order matters
MIN_SHARE_FRACTION = 1e-6  # so that a submitter without shares still gets a place in the queue
MOST_CHARGED_S = Seconds(1e11)  # per batch, so that each logical time is a valid date for any stored values


class LetRule(StrEnum):
    """How a batch's logical end time is computed."""

    DESIGN = "design"  # LST + R: a short batch precedes long batches of equal standing
    WFQ = "wfq"  # LST + R / share: virtual finish time in weighted fair queueing


@dataclass(frozen=True, slots=True)
class LogicalTimes:
    """A new batch's logical times, and its submitter's logical time after the submission.

    `charged_s` is the charge for the batch: submitter_logical_at - logical_start_at.
    """

    logical_start_at: Instant
    logical_end_at: Instant
    submitter_logical_at: Instant
    charged_s: Seconds


def charge_batch(
    *,
    logical_at: Instant,
    now: Instant,
    batch_flop: Flop,
    pool_flop_per_s: FlopPerSecond | float,
    share_fraction: float,
    rule: str = LetRule.DESIGN,
) -> LogicalTimes:
    """Return the logical times for a batch of `batch_flop` (all instances) of a submitter at logical time `logical_at`.

    With R = batch_flop / pool_flop_per_s: start = max(logical_at, now), end = start + R (design) or start + R / share
    (wfq), and the submitter's logical time becomes start + R / share (docs/ordering.md#logical-time). An idle submitter
    restarts from now: unused shares are not saved. A pool of 0 means unknown and counts as 1e12 flop/s; a share is at
    least 1e-6. A batch is charged at most MOST_CHARGED_S, and starts at most that far ahead of now. Raises
    InvalidInputError for invalid numbers.

    A 1000 s batch of a submitter with a quarter of the shares ends 1000 s from now; the submitter's next batch starts
    4000 s from now:

    >>> times = charge_batch(
    ...     logical_at=Instant(0.0), now=Instant(50.0), batch_flop=Flop(1e15),
    ...     pool_flop_per_s=FlopPerSecond(1e12), share_fraction=0.25,
    ... )
    >>> times.logical_start_at, times.logical_end_at, times.submitter_logical_at
    (50.0, 1050.0, 4050.0)
    """
    let_rule = _rule(rule)
    _check("batch_flop", batch_flop)
    _check("pool_flop_per_s", pool_flop_per_s)
    _check("share_fraction", share_fraction, high=1.0)
    whole_pool_s = min(batch_flop / (pool_flop_per_s or UNKNOWN_POOL_FLOP_PER_S), MOST_CHARGED_S)
    charged_s = min(Seconds(whole_pool_s / max(share_fraction, MIN_SHARE_FRACTION)), MOST_CHARGED_S)
    start_at = Instant(min(max(logical_at, now), now + MOST_CHARGED_S))
    length_s = whole_pool_s if let_rule is LetRule.DESIGN else charged_s
    return LogicalTimes(start_at, Instant(start_at + length_s), Instant(start_at + charged_s), charged_s)


@dataclass(frozen=True, slots=True)
class Correction:
    """The change to a submitter's logical time, and the batch's total charge after it."""

    moved_s: Seconds
    charged_s: Seconds


def correct_charge(
    *,
    charged_s: Seconds,
    used_flop: Flop,
    left_flop: Flop,
    pool_flop_per_s: FlopPerSecond | float,
    share_fraction: float,
) -> Correction:
    """Return the correction that charges a batch for actual use: (used + estimated remainder) / pool / share.

    The batch's logical end time does not change; only its submitter's next batches move. An aborted batch has no
    remainder, so unused work is refunded. Raises InvalidInputError for invalid numbers.

    A batch charged 4000 s used half of its 1e15 flop before it was aborted; with a quarter share, 2000 s are refunded:

    >>> correct_charge(charged_s=Seconds(4000.0), used_flop=Flop(5e14), left_flop=Flop(0.0),
    ...                pool_flop_per_s=1e12, share_fraction=0.25)
    Correction(moved_s=-2000.0, charged_s=2000.0)
    """
    _check("used_flop", used_flop)
    _check("left_flop", left_flop)
    _check("pool_flop_per_s", pool_flop_per_s)
    _check("share_fraction", share_fraction, high=1.0)
    whole_pool_s = (used_flop + left_flop) / (pool_flop_per_s or UNKNOWN_POOL_FLOP_PER_S)
    due_s = Seconds(whole_pool_s / max(share_fraction, MIN_SHARE_FRACTION))
    return Correction(Seconds(due_s - charged_s), due_s)


def _rule(rule: str) -> LetRule:
    if rule not in list(LetRule):
        raise InvalidInputError("ordering.let_rule", "one of " + ", ".join(LetRule), rule)
    return LetRule(rule)


def _check(name: str, value: float, high: float = math.inf) -> None:
    if not (math.isfinite(value) and 0.0 <= value <= high):
        raise InvalidInputError(name, "a number of at least 0" if math.isinf(high) else f"0 to {high:g}", value)


# ---- refunds. A batch is charged in full when submitted. The part of the estimates that its instances used stays
# charged and the rest is refunded: once when the batch is aborted (instances in progress count by estimate), and again
# when no instance is in progress any more.

LEAST_MOVED = 1e-6  # as a fraction of the charge; smaller differences are not corrected


@dataclass(frozen=True, slots=True)
class InstanceTally:
    """The number of a batch's instances that count as usage, and how many of these have been returned."""

    charged: int
    used: int


def counted(one: OrderedBatch) -> InstanceTally:
    """Return the tally from a batch's counters. Instances lost by volunteers do not count; errors of failed jobs do.

    A job fails after `max_errors` errors, which are attributed to its submitter.
    """
    counts = one.batch.counts
    faults = min(counts.retries, counts.jobs_failed * one.max_errors)
    charged = max(0, counts.sent - counts.retries + faults)
    return InstanceTally(charged, max(0, charged - counts.in_progress))


def logical_correction(one: OrderedBatch, fraction: float) -> LogicalCorrection | None:
    """Return the charge in logical time that a finished batch's usage justifies; None if the charge is already right.

    No work remains, so the unused part of an aborted batch is refunded. A returned instance used `fraction` of its
    estimate; an instance in progress is assumed to need all of it. The price per second never changes.
    """
    batch, now_s = one.batch, one.charged_s - one.refunded_s
    if one.charged_s <= 0.0 or one.batch_flop <= 0.0:
        return None
    found = counted(one)
    taken = found.charged - found.used + found.used * fraction
    corrected = correct_charge(
        charged_s=Seconds(now_s),
        used_flop=Flop(taken * one.job_flop),
        left_flop=Flop(0.0),
        pool_flop_per_s=one.batch_flop / one.charged_s,  # including its share
        share_fraction=1.0,
    )
    if abs(corrected.moved_s) <= LEAST_MOVED * one.charged_s:
        return None
    return LogicalCorrection(batch.batch_id, batch.submitter_id, Seconds(now_s), corrected.charged_s)


def notes_of_reopened(one: OrderedBatch, now: Instant) -> OrderNotes:
    """Return the notes of an ended batch that becomes active again, as if an ordering pass had just charged it.

    Its used fraction follows from the part of its charge that was not refunded.
    """
    found = counted(one)
    kept_flop = one.batch_flop * (1.0 - one.refunded_s / one.charged_s) if one.charged_s > 0.0 else 0.0
    fraction = kept_flop / (found.used * one.job_flop) if found.used and one.job_flop > 0.0 else 1.0
    counts = one.batch.counts
    return OrderNotes(
        QueueClock(since=now),
        sent=counts.sent,
        charged=found.charged,
        used=found.used,
        charged_at=now,
        used_fraction=max(0.0, fraction),
        sampled=counts.jobs_validated,
    )


def abort_refund(one: OrderedBatch) -> LogicalCorrection | None:
    """Return the correction for an aborted batch, computed from the stored states of its instances."""
    return logical_correction(one, 1.0 if one.notes is None else one.notes.used_fraction)
