"""The due date table for all kinds of batches, with the gate in each row. Pure. docs/formulas.md.

All rows require now + start + R <= now + D. x and all due dates are capped at now + D, so that a host that will
probably finish by then does not stay idle (decision 0062):

    row  batch                    gate          due_at
    1    throughput               none          now + D, if now + queue + R <= now + D
    2    AFAP, no C               P >= p_afap   x, tight
    3    x <= C - T_retry         none          max(x, min(C - T_retry, now + D))
    4    x <= C                   P >= p_late   C
    5    x > C                    P >= p_tight  x, tight

Relaxed work runs in queue order: rows 3 and 4 also require now + queue + R <= due_at (decision 0033). A retry in queue
order goes only to hosts with at most max(T_retry / 2, `alone_s`) of work (decision 0062).
"""

from __future__ import annotations

from domain.batches import THROUGHPUT
from domain.due_terms import DueRow
from domain.ranking import NO_GATE, Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from domain.units import Instant
from scheduler.deadline.inputs import Due, DueInputs, Moment, below_gate, shown_p, too_slow

RETRY_QUEUE = 0.5  # of T_retry: a host with more work than this gets no retry that would run in queue order

QUEUE_TOO_LONG = "queue too long: {0:length} of queued work + {1:length} runtime > {2:length} until the due date"
NOT_YET = "host already has {0:length} of work; retries and copies are sent only below {1:length}"


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """Return the due date from the table above, or the refusal. A retry keeps the due date and the gate of its row.

    Example: an idle host with R = 2 h, R_q = 5 h and P = 0.6, a batch due in 3 days, T_retry = 1 d: row 3, due in 2
    days.

    >>> from domain.batches import QoS
    >>> from domain.units import Seconds
    >>> moment = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.6))
    >>> job = DueInputs(QoS.SHORT_DEADLINE, Instant(3 * 86400.0), bound_s=Seconds(7 * 86400.0),
    ...                 runtime_s=Seconds(7200.0), safe_runtime_s=Seconds(18000.0), retry_s=Seconds(86400.0),
    ...                 retry=False)
    >>> found = due(moment, job, DeadlineSettings())
    >>> found.row.number, found.due_at, found.tight
    (3, 172800.0, False)
    """
    bound_s, runtime_s = job.bound_s, job.runtime_s
    if moment.start_s + runtime_s > bound_s:
        return too_slow("endangered work", moment.start_s, "runtime", runtime_s, bound_s)
    if job.qos is THROUGHPUT and moment.queue_s + runtime_s > bound_s:
        return too_slow("queued work", moment.queue_s, "runtime", runtime_s, bound_s)
    found = _row(moment, job, settings)
    if not found.tight and Instant(moment.now + moment.queue_s + runtime_s) > found.due_at:
        return Refusal(RefusalCode.TOO_SLOW, QUEUE_TOO_LONG, (moment.queue_s, runtime_s, found.due_at - moment.now))
    if job.retry and not found.tight:
        most_s = max(RETRY_QUEUE * job.retry_s, moment.alone_s)
        if moment.queue_s > most_s:
            figures = "{0:length} of work, at most {1:length}"
            return Refusal(RefusalCode.NOT_YET, NOT_YET, (moment.queue_s, most_s), figures=figures)
    return behind_gate(found, moment.percentile)


def _row(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due:
    now, target, retry_s = moment.now, job.complete_at, job.retry_s
    last_at = Instant(now + job.bound_s)
    if job.qos is THROUGHPUT:
        return Due(last_at, False, NO_GATE, 0.0, DueRow.TABLE_1, (moment.queue_s + job.runtime_s, job.bound_s))
    x = min(Instant(now + moment.start_s + job.safe_runtime_s), last_at)
    p = shown_p(moment.percentile)
    if target is None:
        return Due(x, True, Gate.AFAP, settings.p_afap, DueRow.TABLE_2, (p, settings.p_afap, x - now))
    if x <= target - retry_s:
        due_at = Instant(max(x, min(target - retry_s, last_at)))
        return Due(due_at, False, NO_GATE, 0.0, DueRow.TABLE_3, (x - now, target - now, retry_s, due_at - now))
    if x <= target:
        due_at = min(target, last_at)
        late = (x - now, target - now, p, settings.p_late, due_at - now)
        return Due(due_at, False, Gate.LATE, settings.p_late, DueRow.TABLE_4, late)
    return Due(x, True, Gate.TIGHT, settings.p_tight, DueRow.TABLE_5, (target - now, p, settings.p_tight, x - now))


def behind_gate(due: Due, percentile: Percentile) -> Due | Refusal:
    """Return the due date if the host passes the gate of its row, otherwise the refusal."""
    if due.gate is not NO_GATE and not percentile.passes(due.threshold):
        return below_gate(percentile, due.gate, due.threshold)
    return due
