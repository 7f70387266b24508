"""Decides on extra copies of a batch's last jobs. Pure.

There are two rules. `tail_copy` (decisions 62 and 63) copies a job if all its instances in progress are late or on slow
hosts. `accelerated_copy`, the reference server's batch acceleration, copies a job with no recently sent instance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from domain.batches import Batch, BatchCounts
from domain.jobs import InstanceState
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import CopyUse, ExtraCopy, TailInstance, TailJob
from domain.units import Instant, Seconds
from lifecycle.states import NOT_COUNTED, OUTSTANDING, RETRY_CAUSES, USABLE

# An instance in progress for this multiple of its host's usual turnaround is probably lost, so a copy replaces it
# regardless of the cap. Before a batch's last jobs the usual turnaround is less certain. Each earlier timeout of the
# job divides the multiple once more (`patience`).
LOST_IN_TAIL, LOST_BEFORE = 1.5, 3.0
LEAST_USUAL_S = 600.0  # as the forecasts assume between two copies of a job (batch_estimator/chain.py)

# Stored with the copies and shown on pages, without figures: forecasts and due dates have others for the same time.
SOONER = "one of the last jobs: another host would probably return it sooner"
LATE = "the job is late, judged by the usual turnaround of its host"
LOST = "the job is probably lost, judged by the usual turnaround of its host"
ACCELERATED = "its batch is accelerated, and no instance of the job was sent recently"


def is_tail(batch: Batch, feeder: FeederSettings, lifecycle: LifecycleSettings) -> bool:
    """Return whether jobs of a batch may be copied because few are open or nearly all instances have been sent."""
    return batch.counts.jobs_open > 0 and (is_sent(batch.counts, lifecycle) or is_last(batch, feeder, lifecycle))


def is_last(batch: Batch, feeder: FeederSettings, lifecycle: LifecycleSettings) -> bool:
    """Return whether at most max(tail_fraction * jobs, tail_jobs) jobs are open."""
    counts = batch.counts
    return counts.jobs_open <= max(math.ceil(lifecycle.tail_fraction * counts.jobs_total), feeder.tail_jobs)


def tail_size(jobs_total: int, settings: FeederSettings) -> int:
    """Return the number of a batch's last jobs that all workers hold: max(tail_fraction * jobs_total, tail_jobs).

    >>> tail_size(1000, FeederSettings()), tail_size(30, FeederSettings())
    (50, 20)
    """
    return max(math.ceil(settings.tail_fraction * jobs_total), settings.tail_jobs)


def in_tail(batch: Batch, settings: FeederSettings) -> bool:
    """Return whether all of the batch's unsent instances belong to its tail."""
    return batch.counts.unsent <= tail_size(batch.counts.jobs_total, settings)


def is_sent(counts: BatchCounts, lifecycle: LifecycleSettings) -> bool:
    """Return whether the unsent instances number at most `tail_unsent_fraction` per job.

    From then on, copies do not delay the first instance of any job.

    >>> settings = LifecycleSettings(tail_unsent_fraction=0.05)
    >>> [is_sent(BatchCounts(jobs_total=100, unsent=unsent), settings) for unsent in (5, 6)]
    [True, False]
    """
    return counts.unsent <= lifecycle.tail_unsent_fraction * counts.jobs_total


def copies_left(use: CopyUse, settings: LifecycleSettings) -> int:
    """Return how many more copies of late jobs a batch may have: `tail_overhead_fraction` of its instances in total.

    Replacements for failures and timeouts do not count, because batches with unreliable hosts need copies most.

    >>> copies_left(CopyUse(100, copies=5), LifecycleSettings(tail_overhead_fraction=0.1))
    5
    """
    return max(0, math.floor(settings.tail_overhead_fraction * use.wanted) - use.copies)


def usual_s(instance: TailInstance, median_turnaround_s: Seconds | None) -> Seconds:
    """Return an instance's usual turnaround on its host: exp(mean of ln(turnaround / by)) * by.

    `by` is the reference of the host's samples: R for tight due dates, otherwise the median turnaround of the batch, or
    of the app by size if the batch has none; R if neither is known. It is at least LEAST_USUAL_S, because hosts report
    short jobs only with their next request.

    >>> usual_s(TailInstance(1, InstanceState.IN_PROGRESS, est_runtime_s=Seconds(3600.0)), None)
    3600.0
    >>> usual_s(TailInstance(1, InstanceState.IN_PROGRESS, est_runtime_s=Seconds(3.0)), None)
    600.0
    """
    by_s = instance.est_runtime_s if instance.tight or median_turnaround_s is None else median_turnaround_s
    return Seconds(max(LEAST_USUAL_S, by_s * math.exp(instance.ln_ratio)))


def lateness(under_way: Sequence[TailInstance], median_turnaround_s: Seconds | None, now: Instant) -> float:
    """Return the time in progress of the least late instance, as a multiple of its usual turnaround.

    >>> hour = TailInstance(1, InstanceState.IN_PROGRESS, sent_at=Instant(0.0))
    >>> lateness([hour, hour], Seconds(3600.0), Instant(4500.0))
    1.25
    """
    return min((now - one.sent_at) / usual_s(one, median_turnaround_s) for one in under_way)


def rest_s(under_way: Sequence[TailInstance], median_turnaround_s: Seconds | None, now: Instant) -> Seconds:
    """Return a job's estimated remaining time: usual turnaround minus age or, for a late instance, its delay so far.

    The instance with the least remaining time counts (LATE, longest approximate time to end: Zaharia et al., OSDI
    2008).

    >>> slow = TailInstance(1, InstanceState.IN_PROGRESS, sent_at=Instant(0.0), ln_ratio=0.7)
    >>> [round(rest_s([slow], Seconds(3600.0), Instant(now))) for now in (600.0, 7200.0, 9000.0)]
    [6650, 50, 1750]
    """
    return Seconds(min(abs(usual_s(one, median_turnaround_s) - (now - one.sent_at)) for one in under_way))


def patience(job: TailJob, *, is_last: bool) -> float:
    """Return after what multiple of the usual turnaround all instances in progress are considered lost.

    A job that lost instances is already behind its batch, so each timeout divides the multiple once more.
    """
    lost_before = sum(one.state is InstanceState.TIMED_OUT for one in job.instances)
    return (LOST_IN_TAIL if is_last and job.median_turnaround_s is not None else LOST_BEFORE) / (1 + lost_before)


@dataclass(frozen=True, slots=True)
class LateCopy:
    """A copy of a job that is expected to take another `rest_s` without it. `lateness` as from the function."""

    lateness: float
    rest_s: Seconds
    copy: ExtraCopy
    is_capped: bool  # counts towards the cap; otherwise the copy replaces an instance presumed lost


def tail_copy(job: TailJob, *, is_last: bool, now: Instant, settings: LifecycleSettings) -> LateCopy | None:
    """Return a copy if all the job's instances in progress are late and it may have another one; otherwise None.

    `is_last`: the job is one of its batch's last, or belongs to an AFAP batch. Instances are late after
    `tail_late_factor` times the usual turnaround. A last job on slow hosts that need more than another median
    turnaround is copied even earlier. Both kinds of copies are capped. Instances beyond the job's patience are replaced
    regardless of the cap, whether or not the job is one of the last. If the usual turnaround is known only from R, only
    a last job gets a capped copy. A job's max_instances is never exceeded.
    """
    under_way, median_s = _copyable(job), job.median_turnaround_s
    if not under_way or settings.tail_late_factor <= 0.0 or not (is_last or median_s is not None):
        return None
    late, left_s = lateness(under_way, median_s, now), rest_s(under_way, median_s, now)
    is_lost = late >= patience(job, is_last=is_last)
    is_slow = (
        is_last
        and median_s is not None
        and (late >= settings.tail_late_factor or left_s > max(median_s, LEAST_USUAL_S))
    )
    if not (is_lost or is_slow):
        return None
    because = LOST if is_lost else LATE if late >= settings.tail_late_factor else SOONER
    return LateCopy(late, left_s, _copy(job, because), is_capped=not is_lost or median_s is None)


def _copyable(job: TailJob) -> Sequence[TailInstance]:
    """Return the job's instances in progress if it may have another instance, otherwise an empty sequence.

    Such a job has no unsent instance, needs all its instances in progress except copies, and is below its limit.
    """
    states = [one.state for one in job.instances]
    under_way = [one for one in job.instances if one.state is InstanceState.IN_PROGRESS]
    lacking = max(job.job_class.quorum, job.copies) - sum(state in USABLE for state in states)
    outstanding = sum(state in OUTSTANDING for state in states)
    made = sum(state not in NOT_COUNTED for state in states)
    waits = lacking > 0 and outstanding == len(under_way) <= lacking + job.tail_copies
    return under_way if waits and made < job.job_class.max_instances else ()


def accelerated_copy(job: TailJob, *, median_s: Seconds, now: Instant) -> ExtraCopy | None:
    """Return a copy for acceleration if no instance is unsent or was sent within the batch's median turnaround.

    For a batch without a median it is 0, so that no instance counts as recent. Each copy raises the job's limit. This
    is the reference server's rule.
    """
    if any(one.state is InstanceState.UNSENT for one in job.instances):
        return None
    ages_s = [now - one.sent_at for one in job.instances if one.state is InstanceState.IN_PROGRESS]
    if any(age_s < median_s for age_s in ages_s):
        return None
    return _copy(job, ACCELERATED, more_instances=1)


def _copy(job: TailJob, because: str, *, more_instances: int = 0) -> ExtraCopy:
    over = sum(one.state in RETRY_CAUSES for one in job.instances)
    return ExtraCopy(
        job.job_id, len(job.instances), job.tail_copies, over + 1, because=because, more_instances=more_instances
    )
