"""Is one more instance of a job worth it, because the last ones of a batch keep everybody waiting? Pure.

Two rules. `tail_copy` (decisions 62 and 63): a copy when all that is under way of a job is late, or on
slow hosts. `accelerated_copy`: the reference server's batch acceleration, a copy whenever nothing of the
job was sent lately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from domain.batches import Batch, BatchCounts
from domain.formatting import in_words
from domain.jobs import InstanceState
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import CopyUse, ExtraCopy, TailInstance, TailJob
from domain.units import Instant, Seconds
from lifecycle.states import NOT_COUNTED, OUTSTANDING, RETRY_CAUSES, USABLE

# An instance that is out for so many times what it usually takes its host is lost more often than not: a copy replaces
# it, whatever the cap says. Before a batch's last jobs what is usual is known less well. Each instance of the job that
# timed out before divides it once more (`patience`).
LOST_IN_TAIL, LOST_BEFORE = 1.5, 3.0


def is_tail(batch: Batch, feeder: FeederSettings, lifecycle: LifecycleSettings) -> bool:
    """Whether jobs of a batch may be copied: few of them are open, or nearly all of its instances are sent."""
    return batch.counts.jobs_open > 0 and (is_sent(batch.counts, lifecycle) or is_last(batch, feeder, lifecycle))


def is_last(batch: Batch, feeder: FeederSettings, lifecycle: LifecycleSettings) -> bool:
    """Whether no more jobs are open than max(tail_fraction * jobs, tail_jobs)."""
    counts = batch.counts
    return counts.jobs_open <= max(math.ceil(lifecycle.tail_fraction * counts.jobs_total), feeder.tail_jobs)


def is_sent(counts: BatchCounts, lifecycle: LifecycleSettings) -> bool:
    """Whether no more than `tail_unsent_fraction` instances per job are still to be sent.

    Then no copy is in the way of a job's first instance.

    >>> settings = LifecycleSettings(tail_unsent_fraction=0.05)
    >>> [is_sent(BatchCounts(jobs_total=100, unsent=unsent), settings) for unsent in (5, 6)]
    [True, False]
    """
    return counts.unsent <= lifecycle.tail_unsent_fraction * counts.jobs_total


def copies_left(use: CopyUse, settings: LifecycleSettings) -> int:
    """How many copies of late jobs a batch may still have: `tail_overhead_fraction` of the instances it wants.

    Replacements of what failed or timed out do not count: a batch whose hosts lose much needs its copies most.

    >>> copies_left(CopyUse(100, copies=5), LifecycleSettings(tail_overhead_fraction=0.1))
    5
    """
    return max(0, math.floor(settings.tail_overhead_fraction * use.wanted) - use.copies)


def usual_s(instance: TailInstance, median_turnaround_s: Seconds | None) -> Seconds:
    """What such an instance usually takes its host: its mean of ln(turnaround / by) times by.

    `by` is what the host's sums are measured by: R where the due date is tight, else the median turnaround of the batch
    or, while that has none, of the app by size; R where neither is known.

    >>> round(usual_s(TailInstance(1, InstanceState.IN_PROGRESS, est_runtime_s=Seconds(100.0), ln_ratio=0.7), None))
    201
    """
    by_s = instance.est_runtime_s if instance.tight or median_turnaround_s is None else median_turnaround_s
    return Seconds(max(1.0, by_s) * math.exp(instance.ln_ratio))


def lateness(under_way: Sequence[TailInstance], median_turnaround_s: Seconds | None, now: Instant) -> float:
    """For how long the instances are out, in what they usually take: of the one that is least late.

    >>> hour = TailInstance(1, InstanceState.IN_PROGRESS, sent_at=Instant(0.0))
    >>> lateness([hour, hour], Seconds(3600.0), Instant(4500.0))
    1.25
    """
    return min((now - one.sent_at) / usual_s(one, median_turnaround_s) for one in under_way)


def rest_s(under_way: Sequence[TailInstance], median_turnaround_s: Seconds | None, now: Instant) -> Seconds:
    """How much longer a job will take: what is left of the usual time, or as long again as an instance is late.

    Of the instance that has least left (LATE, the longest approximate time to end: Zaharia et al., OSDI 2008).

    >>> slow = TailInstance(1, InstanceState.IN_PROGRESS, sent_at=Instant(0.0), ln_ratio=0.7)
    >>> [round(rest_s([slow], Seconds(3600.0), Instant(now))) for now in (600.0, 7200.0, 9000.0)]
    [6650, 50, 1750]
    """
    return Seconds(min(abs(usual_s(one, median_turnaround_s) - (now - one.sent_at)) for one in under_way))


def patience(job: TailJob, *, is_last: bool) -> float:
    """For how many times what is usual all instances may be out before they count as lost.

    A job that was lost before is behind its batch already, and would keep it waiting if it is lost again: each instance
    that timed out divides the patience once more.
    """
    lost_before = sum(one.state is InstanceState.TIMED_OUT for one in job.instances)
    return (LOST_IN_TAIL if is_last and job.median_turnaround_s is not None else LOST_BEFORE) / (1 + lost_before)


@dataclass(frozen=True, slots=True)
class LateCopy:
    """A copy of a job that will take `rest_s` longer without it."""

    rest_s: Seconds
    copy: ExtraCopy
    is_capped: bool  # it counts towards the cap; else it replaces what is as good as lost


def tail_copy(job: TailJob, *, is_last: bool, now: Instant, settings: LifecycleSettings) -> LateCopy | None:
    """One more copy of a job once all that is under way of it is late; None before, or where it has no place.

    `is_last`: the job is one of its batch's last, or of an AFAP batch. All are late after `tail_late_factor` times what
    they usually take. A last job whose slow hosts need more than another median turnaround need not be late. Both are
    capped. What is out beyond the job's patience is replaced beyond the cap, last or not. While nothing but R says what
    is usual, a last job gets a capped copy then, any other none. Never beyond the job's most instances.
    """
    under_way, median_s = _copyable(job), job.median_turnaround_s
    if not under_way or settings.tail_late_factor <= 0.0 or not (is_last or median_s is not None):
        return None
    late, left_s = lateness(under_way, median_s, now), rest_s(under_way, median_s, now)
    is_lost = late >= patience(job, is_last=is_last)
    is_slow = is_last and median_s is not None and (late >= settings.tail_late_factor or left_s > median_s)
    if not (is_lost or is_slow):
        return None
    because = f"all {len(under_way)} are out for {late:.1f} times what they usually take"
    if late < 1.0:
        because += f", and will take {in_words(left_s)} more"
    return LateCopy(left_s, _copy(job, because), is_capped=not is_lost or median_s is None)


def _copyable(job: TailJob) -> Sequence[TailInstance]:
    """What is under way of a job that has a place for one more; nothing of any other.

    Nothing is unsent, all under way but copies is needed, and the job's limit allows one more.
    """
    states = [one.state for one in job.instances]
    under_way = [one for one in job.instances if one.state is InstanceState.IN_PROGRESS]
    lacking = max(job.job_class.quorum, job.copies) - sum(state in USABLE for state in states)
    outstanding = sum(state in OUTSTANDING for state in states)
    made = sum(state not in NOT_COUNTED for state in states)
    waits = lacking > 0 and outstanding == len(under_way) <= lacking + job.tail_copies
    return under_way if waits and made < job.job_class.max_instances else ()


def accelerated_copy(job: TailJob, *, median_s: Seconds, now: Instant) -> ExtraCopy | None:
    """Batch acceleration's copy: nothing of the job is unsent, and nothing was sent within the batch's median.

    A batch without a median has 0 for it, so that nothing counts as sent lately, and each copy raises what the job
    allows: that is how the rule is.
    """
    if any(one.state is InstanceState.UNSENT for one in job.instances):
        return None
    ages_s = [now - one.sent_at for one in job.instances if one.state is InstanceState.IN_PROGRESS]
    if any(age_s < median_s for age_s in ages_s):
        return None
    return _copy(job, f"accelerated: nothing was sent in the last {in_words(median_s)}", more_instances=1)


def _copy(job: TailJob, because: str, *, more_instances: int = 0) -> ExtraCopy:
    over = sum(one.state in RETRY_CAUSES for one in job.instances)
    return ExtraCopy(
        job.job_id, len(job.instances), job.tail_copies, over + 1, because=because, more_instances=more_instances
    )
