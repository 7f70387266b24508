"""By when must a host return a job, if it may have it at all? Four rules, one per setting. Pure.

Everything is an absolute instant. With start and queue the host's busy time (scheduler/busy.py), R and
R_q its runtimes (scheduler/runtime.py), D the job's delay bound, C when the batch should be complete and
P the percentile of (host, app version):

    x = now + start + R_q        the earliest due date the host can be trusted to keep

The rule `muster` (DESIGN section 5) requires x <= now + D in every row, and gives due dates of at most
now + D:

    row  batch                    gate          due_at
    1    throughput               none          now + D, if now + queue + R <= now + D
    2    AFAP, no C or x <= C     P >= p_afap   x, tight
    3    x <= C - T_retry         none          max(x, min(C - T_retry, now + D))
    4    x <= C                   P >= p_late   C
    5    x > C                    P >= p_tight  x, tight

With an estimate row 2 is for hosts with P >= p_afap only. For others row 3 of AFAP asks for y = now + queue + R_q, when
all is done for sure, instead of x, and is due then, row 4 then at the latest: C is only a forecast (decision 0034).
Relaxed work is computed in its turn: rows 3 and 4, too, ask for now + queue + R <= due_at (decision 0033, POLICY D3).
"""

from __future__ import annotations

from typing import assert_never

from domain.batches import Batch, QoS, complete_at
from domain.jobs import JobClass
from domain.quick import quick_dataclass
from domain.ranking import CutPoints, Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineRule, DeadlineSettings
from domain.units import Instant, Seconds

RETRY_FRACTION = 0.5  # of D: what a retry is given while no good hosts have been measured


@quick_dataclass(frozen=True, slots=True)
class Moment:
    """One host at one moment with one version, as a due date depends on it.

    `start_s` is the busy time of endangered work, `queue_s` of all work, both in seconds from now.
    """

    now: Instant
    start_s: Seconds
    queue_s: Seconds
    percentile: Percentile


@quick_dataclass(frozen=True, slots=True)
class Due:
    """What the host is told, and the terms it follows from.

    `row` is the row of the table (0: a rule without one). `threshold` is 0 where `gate` is none.
    `sentence` with `numbers` put in is `because`.
    """

    due_at: Instant
    tight: bool
    gate: Gate
    threshold: float
    row: int
    sentence: str
    numbers: tuple[float, ...]

    @property
    def because(self) -> str:
        """The reason in one sentence, with its terms; times in seconds from now."""
        return self.sentence.format(*self.numbers)


def assign_due_at(
    moment: Moment,
    batch: Batch,
    job_class: JobClass,
    *,
    runtime_s: Seconds,
    safe_runtime_s: Seconds,
    retry: bool,
    cuts: CutPoints | None,
    settings: DeadlineSettings,
    low_turnaround: bool | None = None,
) -> Due | Refusal:
    """The due date of a job of this class on this host by the rule in the settings, or why it gets none.

    `runtime_s` is R, `safe_runtime_s` is R_q; `retry`: an earlier instance of the job is over and unusable.
    `low_turnaround` says of an accelerated batch whether the host has it; None of any other.
    """
    bound_s = job_class.delay_bound_s
    match settings.rule:
        case DeadlineRule.MUSTER:
            return muster(
                moment,
                batch.qos,
                complete_at(batch, bound_s),
                runtime_s=runtime_s,
                safe_runtime_s=safe_runtime_s,
                bound_s=bound_s,
                retry_s=retry_turnaround_s(cuts, bound_s),
                retry=retry,
                settings=settings,
            )
        case DeadlineRule.PROPOSAL:
            return proposal(
                moment, batch.qos, complete_at(batch, bound_s), runtime_s=runtime_s, bound_s=bound_s, settings=settings
            )
        case DeadlineRule.FIXED:
            return fixed(moment, runtime_s=runtime_s, bound_s=bound_s)
        case DeadlineRule.ACCELERATED:
            return accelerated(moment, runtime_s=runtime_s, bound_s=bound_s, low_turnaround=low_turnaround)
        case _:
            assert_never(settings.rule)


def retry_turnaround_s(cuts: CutPoints | None, bound_s: Seconds) -> Seconds:
    """T_retry: what a retry on a good host takes, validation included; 0.5 D until that is measured."""
    if cuts is None or cuts.retry_turnaround_s is None:
        return Seconds(RETRY_FRACTION * bound_s)
    return cuts.retry_turnaround_s


ROW_1 = "row 1: throughput, all work done {0:.0f} s from now, due at the delay bound of {1:.0f} s"
ROW_2 = "row 2: no estimate yet, P {0:.3f} >= {1:g}, due when this host is done for sure, {2:.0f} s from now"
ROW_2_GOOD = "row 2: a good host, P {0:.3f} >= {1:g}, due when it is done for sure, {2:.0f} s from now"
ROW_3 = (
    "row 3: done for sure {0:.0f} s from now; the batch is to be complete in {1:.0f} s, a retry takes {2:.0f} s; "
    "due in {3:.0f} s"
)
ROW_4 = (
    "row 4: done for sure {0:.0f} s from now, too late for a retry before completion in {1:.0f} s, "
    "P {2:.3f} >= {3:g}; due in {4:.0f} s"
)
ROW_5 = "row 5: completion in {0:.0f} s comes first, P {1:.3f} >= {2:g}, due when done for sure, {3:.0f} s from now"


def muster(
    moment: Moment,
    qos: QoS,
    complete_at: Instant | None,
    *,
    runtime_s: Seconds,
    safe_runtime_s: Seconds,
    bound_s: Seconds,
    retry_s: Seconds,
    retry: bool,
    settings: DeadlineSettings,
) -> Due | Refusal:
    """The table above. A retry must also reach p_retry and keeps its row's due date.

    An idle host with R = 2 h, R_q = 5 h and P = 0.6, a batch due in 3 days, T_retry = 1 d: row 3, due in 2 days.

    >>> moment = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.6))
    >>> due = muster(moment, QoS.SHORT_DEADLINE, Instant(3 * 86400.0), runtime_s=Seconds(7200.0),
    ...              safe_runtime_s=Seconds(18000.0), bound_s=Seconds(7 * 86400.0), retry_s=Seconds(86400.0),
    ...              retry=False, settings=DeadlineSettings())
    >>> due.row, due.due_at, due.tight
    (3, 172800.0, False)
    """
    now = moment.now
    end_at = Instant(now + moment.start_s + safe_runtime_s)
    last_at = Instant(now + bound_s)
    if end_at > last_at:
        return _too_slow("endangered work", moment.start_s, "safe runtime", safe_runtime_s, bound_s)
    afap, sure_at = qos is QoS.AFAP, end_at
    if afap:
        sure_at = max(end_at, Instant(now + moment.queue_s + safe_runtime_s))
        last_at = min(last_at, sure_at)
    shown_p = -1.0 if moment.percentile.p is None else moment.percentile.p
    if qos is QoS.THROUGHPUT:
        if moment.queue_s + runtime_s > bound_s:
            return _too_slow("queue", moment.queue_s, "runtime", runtime_s, bound_s)
        due = Due(last_at, False, Gate.NONE, 0.0, 1, ROW_1, (moment.queue_s + runtime_s, bound_s))
    elif complete_at is None or (afap and end_at <= complete_at and moment.percentile.passes(settings.p_afap)):
        sentence = ROW_2 if complete_at is None else ROW_2_GOOD
        due = Due(end_at, True, Gate.AFAP, settings.p_afap, 2, sentence, (shown_p, settings.p_afap, end_at - now))
    elif sure_at <= complete_at - retry_s:
        due_at = Instant(max(end_at, min(complete_at - retry_s, last_at)))
        numbers = (end_at - now, complete_at - now, retry_s, due_at - now)
        due = Due(due_at, False, Gate.NONE, 0.0, 3, ROW_3, numbers)
    elif end_at <= complete_at:
        due_at = min(complete_at, last_at)
        late = (end_at - now, complete_at - now, shown_p, settings.p_late, due_at - now)
        due = Due(due_at, False, Gate.LATE, settings.p_late, 4, ROW_4, late)
    else:
        tight = (complete_at - now, shown_p, settings.p_tight, end_at - now)
        due = Due(end_at, True, Gate.TIGHT, settings.p_tight, 5, ROW_5, tight)
    if not due.tight and Instant(now + moment.queue_s + runtime_s) > due.due_at:
        return Refusal(RefusalCode.TOO_SLOW, QUEUE_TOO_LONG, (moment.queue_s, runtime_s, due.due_at - now))
    return _gated(due, moment.percentile, retry=retry, settings=settings)


def _gated(due: Due, percentile: Percentile, *, retry: bool, settings: DeadlineSettings) -> Due | Refusal:
    """The due date if the percentile reaches its row's gate and, for a retry, p_retry."""
    if due.gate is not Gate.NONE and not percentile.passes(due.threshold):
        return _below(percentile, due.gate, due.threshold, f"row {due.row}")
    if not retry:
        return due
    if not percentile.passes(settings.p_retry):
        return _below(percentile, Gate.RETRY, settings.p_retry, f"a retry, row {due.row}")
    stricter = due.gate is Gate.NONE or settings.p_retry > due.threshold
    return Due(
        due.due_at,
        due.tight,
        Gate.RETRY if stricter else due.gate,
        max(settings.p_retry, due.threshold),
        due.row,
        due.sentence + "; a retry",
        due.numbers,
    )


PROPOSAL_AFAP = "proposal: no estimate yet, P {0:.3f} > {1:g}, due at busy time + runtime, {2:.0f} s from now"
PROPOSAL_EARLY = "proposal: done {0:.0f} s from now, before completion in {1:.0f} s: due at completion"
PROPOSAL_LATE = "proposal: completion in {0:.0f} s comes first, P {1:.3f} > {2:g}, due when done, {3:.0f} s from now"


def proposal(
    moment: Moment,
    qos: QoS,
    complete_at: Instant | None,
    *,
    runtime_s: Seconds,
    bound_s: Seconds,
    settings: DeadlineSettings,
) -> Due | Refusal:
    """The proposal's pseudo-code word for word: no slack, no retry margin, P compared with `>`.

    Its else branch needs a C(B); a throughput batch, which it leaves out, has now + D for that.
    """
    p = moment.percentile.p
    x = Instant(moment.now + moment.start_s + runtime_s)
    in_s = x - moment.now
    if qos is QoS.AFAP and complete_at is None:
        if p is not None and p > settings.p_afap:
            numbers: tuple[float, ...] = (p, settings.p_afap, in_s)
            return Due(x, True, Gate.AFAP, settings.p_afap, 0, PROPOSAL_AFAP, numbers)
        return _below(moment.percentile, Gate.AFAP, settings.p_afap, "proposal")
    target = Instant(moment.now + bound_s) if complete_at is None else complete_at
    if x < target:
        return Due(target, False, Gate.NONE, 0.0, 0, PROPOSAL_EARLY, (in_s, target - moment.now))
    if p is not None and p > settings.p_tight:
        numbers = (target - moment.now, p, settings.p_tight, in_s)
        return Due(x, True, Gate.TIGHT, settings.p_tight, 0, PROPOSAL_LATE, numbers)
    return _below(moment.percentile, Gate.TIGHT, settings.p_tight, "proposal")


FIXED = "fixed: all work done {0:.0f} s from now, due at the delay bound of {1:.0f} s"


def fixed(moment: Moment, *, runtime_s: Seconds, bound_s: Seconds) -> Due | Refusal:
    """now + D for every host that can be done by then."""
    if moment.queue_s + runtime_s > bound_s:
        return _too_slow("queue", moment.queue_s, "runtime", runtime_s, bound_s)
    numbers = (moment.queue_s + runtime_s, bound_s)
    return Due(Instant(moment.now + bound_s), False, Gate.NONE, 0.0, 0, FIXED, numbers)


ACCELERATED = (
    "accelerated: for a low-turnaround host; all work done {0:.0f} s from now, due at the delay bound of {1:.0f} s"
)
NOT_LOW = "accelerated: the batch is nearly done, its jobs are for low-turnaround hosts only"


def accelerated(moment: Moment, *, runtime_s: Seconds, bound_s: Seconds, low_turnaround: bool | None) -> Due | Refusal:
    """Due dates as `fixed`; the jobs of an accelerated batch of an accelerable app are for low-turnaround hosts alone.

    The reference server's batch acceleration (POLICY 2.7) moves no due date. Its hosts, apps and batches are in
    domain/acceleration.py, its copies in lifecycle/tail.py. `low_turnaround` is None where a job is not accelerated.

    >>> idle = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.9))
    >>> day = dict(runtime_s=Seconds(3600.0), bound_s=Seconds(86400.0))
    >>> accelerated(idle, **day, low_turnaround=None).due_at, accelerated(idle, **day, low_turnaround=True).due_at
    (86400.0, 86400.0)
    >>> accelerated(idle, **day, low_turnaround=False).code.value
    'below_gate'
    """
    due = fixed(moment, runtime_s=runtime_s, bound_s=bound_s)
    if low_turnaround is None or isinstance(due, Refusal):
        return due
    if not low_turnaround:
        return Refusal(RefusalCode.BELOW_GATE, NOT_LOW)
    return Due(due.due_at, False, Gate.LOW_TURNAROUND, 0.0, 0, ACCELERATED, due.numbers)


TOO_SLOW = "host needs {0:.0f} s ({1} {2:.0f} s, {3} {4:.0f} s), job allows {5:.0f} s"
QUEUE_TOO_LONG = "the host's queue of work is too long: {0:.0f} s, and {1:.0f} s for the job, due in {2:.0f} s"
BELOW_GATE = "{0}: percentile {1:.3f} ({2}), {3} asks for {4:g}"
WITHOUT_PERCENTILE = "{0}: percentile none ({2}), {3} asks for {4:g}"


def _too_slow(before: str, before_s: float, own: str, own_s: float, bound_s: float) -> Refusal:
    return Refusal(RefusalCode.TOO_SLOW, TOO_SLOW, (before_s + own_s, before, before_s, own, own_s, bound_s))


def _below(percentile: Percentile, gate: Gate, threshold: float, where: str) -> Refusal:
    sentence = WITHOUT_PERCENTILE if percentile.p is None else BELOW_GATE
    return Refusal(RefusalCode.BELOW_GATE, sentence, (where, percentile.p, percentile.because, gate, threshold))
