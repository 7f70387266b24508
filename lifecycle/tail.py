"""Is one more instance of a job worth it, because the last ones of a batch keep everybody waiting? Pure.

Two rules. `tail_copy` (POLICY D20, D10; decision 36): a copy when the job would come back much later than a good host
could do it, or when a host that has it against a tight due date has fallen silent; another when all that is under way
is late. `accelerated_copy` (POLICY 2.7): the reference server's batch acceleration, a copy whenever nothing of the job
was sent lately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from domain.batches import Batch, BatchCounts, QoS
from domain.jobs import InstanceState
from domain.lengths import in_words
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import NOTHING_BESIDE, ExtraCopy, TailInstance, TailJob, WorkBeside
from domain.units import DAY_S, Instant, Seconds
from lifecycle.states import NOT_COUNTED, OUTSTANDING, USABLE, is_retry_cause

LN_RATIO_SD = 0.4  # spread of ln(turnaround / R) of one host (POLICY 9)
LEAST_SURVIVAL = 1e-9  # further out the normal distribution has no digits left
LOST = 0.05  # of all instances never come back (decision 36)
SILENT_INTERVALS = 3.0  # a host is silent after so many of its intervals between calls,
LEAST_SILENCE_S = DAY_S  # and a day at least (POLICY D10)
STANDARD = NormalDist()


def is_tail(batch: Batch, feeder: FeederSettings, lifecycle: LifecycleSettings) -> bool:
    """Whether no more of a batch is open than its tail: max(tail_fraction * jobs, tail_jobs).

    That of an AFAP batch begins earlier, at `afap_tail_fraction`, or when all but a few of its instances are sent: then
    no copy is in the way of a job's first.
    """
    counts = batch.counts
    if batch.qos is QoS.AFAP and counts.jobs_open > 0 and is_sent(counts, lifecycle):
        return True
    fraction = tail_fraction(feeder, lifecycle) if batch.qos is QoS.AFAP else feeder.tail_fraction
    size = max(math.ceil(fraction * counts.jobs_total), feeder.tail_jobs)
    return 0 < counts.jobs_open <= size


def tail_fraction(feeder: FeederSettings, lifecycle: LifecycleSettings) -> float:
    """The largest share of any batch's jobs that is its tail."""
    return max(feeder.tail_fraction, lifecycle.afap_tail_fraction)


def is_sent(counts: BatchCounts, lifecycle: LifecycleSettings) -> bool:
    """Whether no more than `afap_unsent_fraction` instances per job are still to be sent.

    >>> settings = LifecycleSettings(afap_unsent_fraction=0.05)
    >>> [is_sent(BatchCounts(jobs_total=100, unsent=unsent), settings) for unsent in (5, 6)]
    [True, False]
    """
    return counts.unsent <= lifecycle.afap_unsent_fraction * counts.jobs_total


def copies_left(
    counts: BatchCounts,
    *,
    wanted: int,
    settings: LifecycleSettings,
    first: bool = False,
    beside: WorkBeside = NOTHING_BESIDE,
) -> int:
    """How many copies a batch may have before its overhead reaches the cap; of jobs without one, if `first`.

    First copies keep to a share of it, so that there are some left for the jobs that lose theirs, which are last.

    Overhead are all instances beyond those `wanted`, sent or waiting, whatever they were made for: what is lost to
    time-outs leaves less for copies. A job wants its quorum, or as many copies as trust in its first host asks for:
    `wanted` is the sum over the batch's jobs.

    Where the app's batches together keep within the cap, the batch may go beyond its own: what volunteers compute twice
    is a share of all they compute. `beside` is what the others needed, and used beyond that.

    >>> counts = BatchCounts(jobs_total=100, sent=104, unsent=1)
    >>> copies_left(counts, wanted=100, settings=LifecycleSettings(tail_overhead_fraction=0.1))
    5
    >>> settings = LifecycleSettings(tail_overhead_fraction=0.1, tail_first_fraction=0.75)
    >>> copies_left(counts, wanted=100, settings=settings, first=True)
    3
    >>> copies_left(counts, wanted=100, settings=settings, beside=WorkBeside(needed=1000, extra=60))
    45
    """
    own = counts.sent + counts.unsent - wanted
    every = WorkBeside(wanted + beside.needed, own + beside.extra)
    caps = [math.floor(settings.tail_overhead_fraction * needed) for needed in (wanted, every.needed)]
    if first:
        caps = [math.ceil(settings.tail_first_fraction * cap) for cap in caps]
    return max(0, caps[0] - own, caps[1] - every.extra)


def usual_s(instance: TailInstance, median_turnaround_s: Seconds | None) -> Seconds:
    """What such an instance usually takes its host: its mean of ln(turnaround / by) times by.

    `by` is what the host's sums are measured by: R where the due date is tight, else the median turnaround of the batch
    or, while that has none, of the app by size; R where neither is known.

    >>> round(usual_s(TailInstance(1, InstanceState.IN_PROGRESS, est_runtime_s=Seconds(100.0), ln_ratio=0.7), None))
    201
    """
    by_s = instance.est_runtime_s if instance.tight or median_turnaround_s is None else median_turnaround_s
    return Seconds(max(1.0, by_s) * math.exp(instance.ln_ratio))


def rest_s(median_s: Seconds, elapsed_s: float, timeout_s: float) -> Seconds:
    """How much longer an instance is expected to take that is not back after `elapsed_s`; lost, until its time-out.

    It is lost with the probability p = L / (L + (1 - L) S(elapsed)), where L are the LOST of all (Bayes), and is then
    missed for `timeout_s` more. Else turnaround is log-normal around `median_s` with log-sd 0.4, and the rest has
    the median F^-1(1 - S(elapsed) / 2) - elapsed. What is a little late is soon back; what is very late never is.

    >>> [round(rest_s(Seconds(3600.0), elapsed_s, 9000.0)) for elapsed_s in (0.0, 3600.0, 7200.0, 10800.0)]
    [3870, 1866, 5441, 8567]
    """
    late = max(0.0, elapsed_s) / median_s
    survival = STANDARD.cdf(-math.log(late) / LN_RATIO_SD) if late > 0.0 else 1.0
    if survival < LEAST_SURVIVAL:
        return Seconds(timeout_s if timeout_s > 0.0 else elapsed_s)  # as long again, where no time-out ends it
    lost = LOST / (LOST + (1.0 - LOST) * survival)
    alive_s = max(0.0, median_s * math.exp(-LN_RATIO_SD * STANDARD.inv_cdf(survival / 2.0)) - late * median_s)
    return Seconds((1.0 - lost) * alive_s + lost * max(alive_s, timeout_s))


def _rest_s(instance: TailInstance, median_turnaround_s: Seconds | None, now: Instant) -> Seconds:
    usual = usual_s(instance, median_turnaround_s)
    return rest_s(usual, now - instance.sent_at, instance.timeout_at - now)


def is_suspect(instance: TailInstance, now: Instant) -> bool:
    """Whether a host with a tight due date has been silent for max(3 of its intervals, 1 day)."""
    silent_s = now - instance.last_rpc_at
    return instance.tight and silent_s > max(SILENT_INTERVALS * (instance.rpc_interval_s or 0.0), LEAST_SILENCE_S)


@dataclass(frozen=True, slots=True)
class _Open:
    """What of a job is under way, and whether another instance has a place at all."""

    under_way: tuple[TailInstance, ...]
    has_room: bool


def _open(job: TailJob) -> _Open:
    """`has_room`: nothing is unsent, all under way but copies is needed, and the job's limit allows one more."""
    states = [one.state for one in job.instances]
    under_way = tuple(one for one in job.instances if one.state is InstanceState.IN_PROGRESS)
    lacking = max(job.job_class.quorum, job.copies) - sum(state in USABLE for state in states)
    outstanding = sum(state in OUTSTANDING for state in states)
    made = sum(state not in NOT_COUNTED for state in states)
    waits = bool(under_way) and lacking > 0 and outstanding == len(under_way) <= lacking + job.tail_copies
    return _Open(under_way, waits and made < job.job_class.max_instances)


def job_rest_s(job: TailJob, *, now: Instant) -> Seconds:
    """How long until as many instances as the job lacks are expected back; 0 when nothing is under way."""
    under_way = [one for one in job.instances if one.state is InstanceState.IN_PROGRESS]
    lacking = max(job.job_class.quorum, job.copies) - sum(one.state in USABLE for one in job.instances)
    rests = sorted(_rest_s(one, job.median_turnaround_s, now) for one in under_way)
    return rests[min(max(1, lacking), len(rests)) - 1] if rests else Seconds(0.0)


def tail_copy(
    job: TailJob,
    *,
    qos: QoS,
    good_host_s: Seconds,
    now: Instant,
    settings: LifecycleSettings,
) -> ExtraCopy | None:
    """One copy of a job in the tail of its batch, with its reason; None when none is worth it.

    `good_host_s` is what a host with P >= p_tight takes for a job of the app, validation included (T_retry), and `qos`
    its batch's. Never beyond its most instances; a second copy, and so on, only when all that is under way is out for
    `tail_late_factor` times what it usually takes. It stands like the retry it may save: a host must reach p_retry to
    get it. Nobody waits for a throughput batch: a job of one gets its first copy only when it is out for
    `throughput_late_factor` times what it usually takes, since it is lost by then more often than not; none while
    nobody knows what is usual.
    """
    look = _open(job)
    if not look.has_room:
        return None
    if job.tail_copies > 0:
        return _late_copy(job, look, now, settings.tail_late_factor)
    if qos is QoS.THROUGHPUT:
        is_known = job.median_turnaround_s is not None
        return _late_copy(job, look, now, settings.throughput_late_factor) if is_known else None
    silent = next((one for one in look.under_way if is_suspect(one, now)), None)
    if silent is not None:
        silence = in_words(now - silent.last_rpc_at)
        return _copy(job, f"host {silent.host_id} has been silent for {silence} with a tight due date")
    longest_s = max(_rest_s(one, job.median_turnaround_s, now) for one in look.under_way)
    if longest_s <= settings.tail_wait_factor * good_host_s:
        return None
    return _copy(
        job,
        f"expected in {in_words(longest_s)}, as it may be lost, more than {settings.tail_wait_factor:g} times the "
        f"{in_words(good_host_s)} a good host needs",
    )


def _late_copy(job: TailJob, look: _Open, now: Instant, late_factor: float) -> ExtraCopy | None:
    """One when even the instance that is least late is late; none at a factor of 0."""
    out = min((now - one.sent_at) / usual_s(one, job.median_turnaround_s) for one in look.under_way)
    if late_factor <= 0.0 or out < late_factor:
        return None
    return _copy(job, f"all {len(look.under_way)} are out for {out:.1f} times what they usually take")


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
    over = sum(is_retry_cause(one.state) for one in job.instances)
    return ExtraCopy(
        job.job_id, len(job.instances), job.tail_copies, over + 1, because=because, more_instances=more_instances
    )
