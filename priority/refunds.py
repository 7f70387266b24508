"""What does a batch that is over get back in its submitter's logical time? Pure.

It was charged whole when it was submitted. What its instances took of their estimates stays charged, the rest goes
back: when it is aborted, what is under way counting by estimate, and again when nothing of it is under way any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.ordered_work import LogicalCorrection, OrderedBatch
from domain.units import Flop, Seconds
from priority.logical_time import correct_charge

LEAST_MOVED = 1e-6  # of what was charged: less is not corrected


@dataclass(frozen=True, slots=True)
class Counted:
    """Instances of a batch that count as usage, and those of them that are back."""

    charged: int
    used: int


def counted(one: OrderedBatch) -> Counted:
    """What its counters come to. What volunteers lost does not count; the errors of jobs that failed do.

    A job fails after `max_errors` errors: those are taken for the submitter's fault.
    """
    counts = one.batch.counts
    faults = min(counts.retries, counts.jobs_failed * one.max_errors)
    charged = max(0, counts.sent - counts.retries + faults)
    return Counted(charged, max(0, charged - counts.in_progress))


def logical_correction(one: OrderedBatch, fraction: float) -> LogicalCorrection | None:
    """What a batch that is over should have been charged in logical time, by what its instances took; None: as it is.

    Nothing is left of it: what an aborted batch did not use is refunded. An instance that is back took `fraction` of
    its estimate, one that is under way is taken to need all of it. What a second is charged for never changes.
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
        pool_flop_per_s=one.batch_flop / one.charged_s,  # with its share
        share_fraction=1.0,
    )
    if abs(corrected.moved_s) <= LEAST_MOVED * one.charged_s:
        return None
    return LogicalCorrection(batch.batch_id, batch.submitter_id, Seconds(now_s), corrected.charged_s)


def abort_refund(one: OrderedBatch) -> LogicalCorrection | None:
    """The correction of a batch in the moment it is aborted, by what is noted of its instances."""
    return logical_correction(one, 1.0 if one.notes is None else one.notes.used_fraction)
