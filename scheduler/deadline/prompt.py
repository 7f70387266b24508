"""The default rule: AFAP batches, and batches past C, get their own due dates; all others use the table. Pure.

These batches have two rows, with or without C (decision 0036):

    2    good hosts               P >= p_afap   x, tight
    3    y <= now + 2 T_retry     none          y = now + queue + R_q, the host's safe completion time

each multiplied by `afap_due_factor` (decision 0050), at most D. Row 3 comes first for first instances of a batch past
C: no due date can save its deadline, so hosts need not interrupt other work for it (decision 0084).
"""

from __future__ import annotations

from domain.batches import AFAP
from domain.due_terms import DueRow
from domain.ranking import NO_GATE, Gate, Percentile
from domain.refusals import Refusal
from domain.settings import DeadlineSettings
from domain.units import Instant
from scheduler.deadline import table
from scheduler.deadline.inputs import (
    Due,
    DueInputs,
    Moment,
    below_gate,
    busy_below_gate,
    shown_p,
    slow_below_gate,
    too_slow,
)


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """Return the due date or the refusal.

    Hosts below the gate get an AFAP job only if y is at most `afap_turn_factor` T_retry ahead, regardless of C, because
    C moves as jobs are sent (decision 0061). Example: an idle host below the gate with R_q = 10 h and T_retry = 12 h
    finishes in queue order within 10 h, so the job is due after 11 h.

    >>> from domain.batches import QoS
    >>> from domain.units import Seconds
    >>> moment = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.3))
    >>> job = DueInputs(QoS.AFAP, None, bound_s=Seconds(604800.0), runtime_s=Seconds(18e3),
    ...                 safe_runtime_s=Seconds(36e3), retry_s=Seconds(43200.0), retry=False)
    >>> found = due(moment, job, DeadlineSettings())
    >>> found.row.number, found.due_at, found.tight, found.gate.value
    (3, 39600.0, False, 'none')
    """
    is_late = job.qos is not AFAP and job.complete_at is not None and job.complete_at <= moment.now
    if job.qos is not AFAP and not is_late:
        return table.due(moment, job, settings)
    if moment.start_s + job.runtime_s > job.bound_s:
        return too_slow("endangered work", moment.start_s, "runtime", job.runtime_s, job.bound_s)
    found = _row(moment, job, settings, in_turn=is_late and not job.retry)
    if job.retry:
        return _retry(found, moment.percentile, settings)
    passed, turn_s, takes_s = table.behind_gate(found, moment.percentile), _turn_s(job, settings), job.safe_runtime_s
    if not isinstance(passed, Refusal) or turn_s <= 0.0:
        return passed
    gate = moment.percentile, found.gate, found.threshold
    if takes_s > turn_s:
        return slow_below_gate(*gate, takes_s, turn_s)
    return busy_below_gate(*gate, max(moment.start_s, moment.queue_s), turn_s - takes_s)


def _row(moment: Moment, job: DueInputs, settings: DeadlineSettings, *, in_turn: bool) -> Due:
    """Return the row that applies; `in_turn`: row 3 if it applies, also for hosts above the gate."""
    now, bound_s = moment.now, job.bound_s
    in_s = min(moment.start_s + job.safe_runtime_s, bound_s)
    if in_turn or not moment.percentile.passes(settings.p_afap):
        turn_s = max(in_s, moment.queue_s + job.safe_runtime_s)
        if turn_s <= _turn_s(job, settings):
            due_s = min(settings.afap_due_factor * turn_s, bound_s)
            numbers: tuple[float, ...] = (turn_s, settings.afap_turn_factor, job.retry_s, due_s)
            return Due(Instant(now + due_s), False, NO_GATE, 0.0, DueRow.PROMPT_3, numbers)
    due_s = min(settings.afap_due_factor * in_s, bound_s)
    row = DueRow.PROMPT_2_NO_ESTIMATE if job.complete_at is None else DueRow.PROMPT_2
    numbers = (shown_p(moment.percentile), settings.p_afap, in_s, due_s)
    return Due(Instant(now + due_s), True, Gate.AFAP, settings.p_afap, row, numbers)


def _turn_s(job: DueInputs, settings: DeadlineSettings) -> float:
    """Return the time within which a host must finish the job in queue order to need no gate."""
    return min(job.bound_s, settings.afap_turn_factor * job.retry_s)


def _retry(found: Due, percentile: Percentile, settings: DeadlineSettings) -> Due | Refusal:
    """Apply p_retry to a retry of an AFAP job, in addition to the gate of its row."""
    passed = table.behind_gate(found, percentile)
    if isinstance(passed, Refusal):
        return passed
    if not percentile.passes(settings.p_retry):
        return below_gate(percentile, Gate.RETRY, settings.p_retry)
    stricter = found.gate is NO_GATE or settings.p_retry > found.threshold
    gate, threshold = Gate.RETRY if stricter else found.gate, max(settings.p_retry, found.threshold)
    return Due(found.due_at, found.tight, gate, threshold, found.row, found.numbers, retry=True)
