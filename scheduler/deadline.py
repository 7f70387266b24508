"""By when must a host return a job, if it may have it at all? Four rules, one per setting. Pure.

Everything is an absolute instant. With start and queue the host's busy time (scheduler/busy.py), R and
R_q its runtimes (scheduler/runtime.py), D the job's delay bound, C when the batch should be complete and
P the percentile of (host, app version):

    x = now + start + R_q        the earliest due date the host can be trusted to keep

The rule `muster` (DESIGN section 5) requires now + start + R <= now + D in every row. x and all due dates are at most
now + D, so that no host idles that is likely to be done by then (decision 0062):

    row  batch                    gate          due_at
    1    throughput               none          now + D, if now + queue + R <= now + D
    2    AFAP, no C               P >= p_afap   x, tight
    3    x <= C - T_retry         none          max(x, min(C - T_retry, now + D))
    4    x <= C                   P >= p_late   C
    5    x > C                    P >= p_tight  x, tight

Relaxed work is computed in its turn: rows 3 and 4, too, ask for now + queue + R <= due_at (decision 0033, POLICY D3).
A retry that is computed in its turn goes to a host with work for at most half of T_retry, or for as long as it is to
have some without asking for more, if that is longer (decision 0062).

With `afap` = prompt AFAP batches have two rows of their own instead, with or without C (decision 0036):

    2    good hosts               P >= p_afap   x, tight
    3    y <= now + 2 T_retry     none          y = now + queue + R_q, when all is done for sure

each `afap_due_factor` times as far ahead (decision 50), at most D.
"""

from __future__ import annotations

from typing import assert_never

from domain.batches import Batch, QoS, complete_at
from domain.jobs import JobClass
from domain.ranking import CutPoints, Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings
from domain.units import Instant, Seconds
from scheduler.compared_rules import accelerated, fixed, proposal
from scheduler.due import Due, Moment, below_gate, too_slow

RETRY_QUEUE = 0.5  # of T_retry: with more work than this a host gets no retry that would wait for its turn
RETRY_FRACTION = 0.5  # of D: what a retry is given while no good hosts have been measured


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
        case DeadlineRule.MUSTER if batch.qos is QoS.AFAP and settings.afap is AfapPolicy.PROMPT:
            return prompt(
                moment,
                complete_at(batch, bound_s),
                runtime_s=runtime_s,
                safe_runtime_s=safe_runtime_s,
                bound_s=bound_s,
                retry_s=retry_turnaround_s(cuts, bound_s),
                retry=retry,
                settings=settings,
            )
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


ROW_1 = "row 1: throughput, all work done {0:length} from now, due at the delay bound of {1:length}"
ROW_2 = "row 2: no estimate yet, P {0:.3f} >= {1:g}, due when this host is done for sure, {2:length} from now"
ROW_2_PROMPT = "row 2: no estimate yet, P {0:.3f} >= {1:g}, done for sure {2:length} from now; due in {3:length}"
ROW_2_GOOD = "row 2: a good host, P {0:.3f} >= {1:g}, done for sure {2:length} from now; due in {3:length}"
ROW_3 = (
    "row 3: done for sure {0:length} from now; the batch is to be complete in {1:length}, a retry takes {2:length}; "
    "due in {3:length}"
)
ROW_3_TURN = (
    "row 3: done in its turn {0:length} from now, within {1:g} times the {2:length} of a retry; due in {3:length}"
)
ROW_4 = (
    "row 4: done for sure {0:length} from now, too late for a retry before completion in {1:length}, "
    "P {2:.3f} >= {3:g}; due in {4:length}"
)
ROW_5 = "row 5: completion in {0:length} comes first, P {1:.3f} >= {2:g}, due when done for sure, {3:length} from now"


QUEUE_TOO_LONG = "the host's queue of work is too long: {0:length}, and {1:length} for the job, due in {2:length}"
NOT_YET = "the host has work for {0:length}; a retry goes to one with work for less than {1:length}"


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
    """The table above. A retry keeps its row's due date and gate.

    An idle host with R = 2 h, R_q = 5 h and P = 0.6, a batch due in 3 days, T_retry = 1 d: row 3, due in 2 days.

    >>> moment = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.6))
    >>> due = muster(moment, QoS.SHORT_DEADLINE, Instant(3 * 86400.0), runtime_s=Seconds(7200.0),
    ...              safe_runtime_s=Seconds(18000.0), bound_s=Seconds(7 * 86400.0), retry_s=Seconds(86400.0),
    ...              retry=False, settings=DeadlineSettings())
    >>> due.row, due.due_at, due.tight
    (3, 172800.0, False)
    """
    now = moment.now
    if moment.start_s + runtime_s > bound_s:
        return too_slow("endangered work", moment.start_s, "runtime", runtime_s, bound_s)
    last_at = Instant(now + bound_s)
    end_at = min(Instant(now + moment.start_s + safe_runtime_s), last_at)
    shown_p = -1.0 if moment.percentile.p is None else moment.percentile.p
    if qos is QoS.THROUGHPUT:
        if moment.queue_s + runtime_s > bound_s:
            return too_slow("queue", moment.queue_s, "runtime", runtime_s, bound_s)
        due = Due(last_at, False, Gate.NONE, 0.0, 1, ROW_1, (moment.queue_s + runtime_s, bound_s))
    elif complete_at is None:
        due = Due(end_at, True, Gate.AFAP, settings.p_afap, 2, ROW_2, (shown_p, settings.p_afap, end_at - now))
    elif end_at <= complete_at - retry_s:
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
    most_s = max(RETRY_QUEUE * retry_s, moment.alone_s)
    if retry and not due.tight and moment.queue_s > most_s:
        return Refusal(RefusalCode.NOT_YET, NOT_YET, (moment.queue_s, most_s))
    return _gated(due, moment.percentile, settings=settings)


def prompt(
    moment: Moment,
    complete_at: Instant | None,
    *,
    runtime_s: Seconds,
    safe_runtime_s: Seconds,
    bound_s: Seconds,
    retry_s: Seconds,
    retry: bool,
    settings: DeadlineSettings,
) -> Due | Refusal:
    """AFAP batches (decision 36): good hosts hurry, x is their due date; others are done in their turn, at y.

    Others get a job only if y is at most `afap_turn_factor` T_retry ahead, whatever C is: C moves with what is sent
    (decision 61). An idle host with R_q = 10 h below the gate, T_retry = 12 h: done in its turn in 10 h, due after 11.

    >>> moment = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.3))
    >>> due = prompt(moment, None, runtime_s=Seconds(18e3), safe_runtime_s=Seconds(36e3), bound_s=Seconds(604800.0),
    ...              retry_s=Seconds(43200.0), retry=False, settings=DeadlineSettings())
    >>> due.row, due.due_at, due.tight, due.gate.value
    (3, 39600.0, False, 'none')
    """
    now = moment.now
    if moment.start_s + runtime_s > bound_s:
        return too_slow("endangered work", moment.start_s, "runtime", runtime_s, bound_s)
    in_s = min(moment.start_s + safe_runtime_s, bound_s)
    if not moment.percentile.passes(settings.p_afap):
        turn_s = max(in_s, moment.queue_s + safe_runtime_s)
        if turn_s <= min(bound_s, settings.afap_turn_factor * retry_s):
            due_s = min(settings.afap_due_factor * turn_s, bound_s)
            numbers: tuple[float, ...] = (turn_s, settings.afap_turn_factor, retry_s, due_s)
            due = Due(Instant(now + due_s), False, Gate.NONE, 0.0, 3, ROW_3_TURN, numbers)
            return _gated(due, moment.percentile, retry=retry, settings=settings)
    shown_p = -1.0 if moment.percentile.p is None else moment.percentile.p
    sentence = ROW_2_PROMPT if complete_at is None else ROW_2_GOOD
    due_s = min(settings.afap_due_factor * in_s, bound_s)
    numbers = (shown_p, settings.p_afap, in_s, due_s)
    due = Due(Instant(now + due_s), True, Gate.AFAP, settings.p_afap, 2, sentence, numbers)
    return _gated(due, moment.percentile, retry=retry, settings=settings)


def _gated(due: Due, percentile: Percentile, *, settings: DeadlineSettings, retry: bool = False) -> Due | Refusal:
    """The due date if the percentile reaches its row's gate and, for a retry of an AFAP job, p_retry."""
    if due.gate is not Gate.NONE and not percentile.passes(due.threshold):
        return below_gate(percentile, due.gate, due.threshold, f"row {due.row}")
    if not retry:
        return due
    if not percentile.passes(settings.p_retry):
        return below_gate(percentile, Gate.RETRY, settings.p_retry, f"a retry, row {due.row}")
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
