"""The rule `proposal`: the pseudo-code of the original proposal, without slack or retry margin (docs/proposal.md).
Pure.
"""

from __future__ import annotations

from domain.batches import QoS
from domain.due_terms import DueRow
from domain.ranking import Gate
from domain.refusals import Refusal
from domain.settings import DeadlineSettings
from domain.units import Instant
from scheduler.deadline.inputs import Due, DueInputs, Moment, below_gate


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """Apply the pseudo-code literally: P is compared with `>`.

    Its else branch needs C(B); throughput batches, which it does not cover, use now + D instead.
    """
    p = moment.percentile.p
    x = Instant(moment.now + moment.start_s + job.runtime_s)
    in_s = x - moment.now
    if job.qos is QoS.AFAP and job.complete_at is None:
        if p is not None and p > settings.p_afap:
            numbers: tuple[float, ...] = (p, settings.p_afap, in_s)
            return Due(x, True, Gate.AFAP, settings.p_afap, DueRow.PROPOSAL_AFAP, numbers)
        return below_gate(moment.percentile, Gate.AFAP, settings.p_afap)
    target = Instant(moment.now + job.bound_s) if job.complete_at is None else job.complete_at
    if x < target:
        return Due(target, False, Gate.NONE, 0.0, DueRow.PROPOSAL_EARLY, (in_s, target - moment.now))
    if p is not None and p > settings.p_tight:
        numbers = (target - moment.now, p, settings.p_tight, in_s)
        return Due(x, True, Gate.TIGHT, settings.p_tight, DueRow.PROPOSAL_LATE, numbers)
    return below_gate(moment.percentile, Gate.TIGHT, settings.p_tight)
