"""The rules Muster is compared with: the proposal's pseudo-code, one delay bound for all, batch acceleration. Pure."""

from __future__ import annotations

from domain.batches import QoS
from domain.ranking import Gate
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from domain.units import Instant, Seconds
from scheduler.due import Due, Moment, below_gate, too_slow

PROPOSAL_AFAP = "proposal: no estimate yet, P {0:.3f} > {1:g}, due at busy time + runtime, {2:length} from now"
PROPOSAL_EARLY = "proposal: done {0:length} from now, before completion in {1:length}: due at completion"
PROPOSAL_LATE = "proposal: completion in {0:length} comes first, P {1:.3f} > {2:g}, due when done, {3:length} from now"


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
        return below_gate(moment.percentile, Gate.AFAP, settings.p_afap, "proposal")
    target = Instant(moment.now + bound_s) if complete_at is None else complete_at
    if x < target:
        return Due(target, False, Gate.NONE, 0.0, 0, PROPOSAL_EARLY, (in_s, target - moment.now))
    if p is not None and p > settings.p_tight:
        numbers = (target - moment.now, p, settings.p_tight, in_s)
        return Due(x, True, Gate.TIGHT, settings.p_tight, 0, PROPOSAL_LATE, numbers)
    return below_gate(moment.percentile, Gate.TIGHT, settings.p_tight, "proposal")


FIXED = "fixed: all work done {0:length} from now, due at the delay bound of {1:length}"


def fixed(moment: Moment, *, runtime_s: Seconds, bound_s: Seconds) -> Due | Refusal:
    """now + D for every host that can be done by then."""
    if moment.queue_s + runtime_s > bound_s:
        return too_slow("queue", moment.queue_s, "runtime", runtime_s, bound_s)
    numbers = (moment.queue_s + runtime_s, bound_s)
    return Due(Instant(moment.now + bound_s), False, Gate.NONE, 0.0, 0, FIXED, numbers)


ACCELERATED = (
    "accelerated: for a low-turnaround host; all work done {0:length} from now, due at the delay bound of {1:length}"
)
NOT_LOW = "accelerated: the batch is nearly done, its jobs are for low-turnaround hosts only"


def accelerated(moment: Moment, *, runtime_s: Seconds, bound_s: Seconds, low_turnaround: bool | None) -> Due | Refusal:
    """Due dates as `fixed`; the jobs of an accelerated batch of an accelerable app are for low-turnaround hosts alone.

    The reference server's batch acceleration (POLICY 2.7) moves no due date. Its hosts, apps and batches are in
    domain/acceleration.py, its copies in lifecycle/tail.py. `low_turnaround` is None where a job is not accelerated.

    >>> from domain.ranking import Percentile
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
