"""The rule `proposal`: the proposal's pseudo-code, without slack or retry margin. Pure."""

from __future__ import annotations

from domain.batches import QoS
from domain.ranking import Gate
from domain.refusals import Refusal
from domain.settings import DeadlineSettings
from domain.units import Instant
from scheduler.deadline.inputs import Due, DueInputs, Moment, below_gate

AFAP = "proposal: no estimate yet, P {0:.3f} > {1:g}, due at busy time + runtime, {2:length} from now"
EARLY = "proposal: done {0:length} from now, before completion in {1:length}: due at completion"
LATE = "proposal: completion in {0:length} comes first, P {1:.3f} > {2:g}, due when done, {3:length} from now"


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """The pseudo-code as it stands: P is compared with `>`.

    Its else branch needs a C(B); a throughput batch, which it leaves out, has now + D for that.
    """
    p = moment.percentile.p
    x = Instant(moment.now + moment.start_s + job.runtime_s)
    in_s = x - moment.now
    if job.qos is QoS.AFAP and job.complete_at is None:
        if p is not None and p > settings.p_afap:
            numbers: tuple[float, ...] = (p, settings.p_afap, in_s)
            return Due(x, True, Gate.AFAP, settings.p_afap, 0, AFAP, numbers)
        return below_gate(moment.percentile, Gate.AFAP, settings.p_afap, "proposal")
    target = Instant(moment.now + job.bound_s) if job.complete_at is None else job.complete_at
    if x < target:
        return Due(target, False, Gate.NONE, 0.0, 0, EARLY, (in_s, target - moment.now))
    if p is not None and p > settings.p_tight:
        numbers = (target - moment.now, p, settings.p_tight, in_s)
        return Due(x, True, Gate.TIGHT, settings.p_tight, 0, LATE, numbers)
    return below_gate(moment.percentile, Gate.TIGHT, settings.p_tight, "proposal")
