"""The rule `accelerated`: due dates as `fixed`, with the reference server's batch acceleration. Pure.

Its hosts, apps and batches are in domain/acceleration.py, its copies in lifecycle/tail.py.
"""

from __future__ import annotations

from domain.due_terms import DueRow
from domain.ranking import Gate
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from scheduler.deadline import fixed
from scheduler.deadline.inputs import Due, DueInputs, Moment

NOT_LOW = "accelerated: the batch is nearly done, its jobs are for low-turnaround hosts only"


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """Jobs of an accelerated batch of an accelerable app are for low-turnaround hosts alone; no due date moves.

    >>> from dataclasses import replace
    >>> from domain.batches import QoS
    >>> from domain.ranking import Percentile
    >>> from domain.units import Instant, Seconds
    >>> idle = Moment(Instant(0.0), Seconds(0.0), Seconds(0.0), Percentile(0.9))
    >>> hour, day = Seconds(3600.0), Seconds(86400.0)
    >>> job = DueInputs(QoS.AFAP, None, day, hour, hour, day, retry=False)
    >>> [due(idle, replace(job, low_turnaround=low), DeadlineSettings()).due_at for low in (None, True)]
    [86400.0, 86400.0]
    >>> due(idle, replace(job, low_turnaround=False), DeadlineSettings()).code.value
    'below_gate'
    """
    found = fixed.due(moment, job, settings)
    if job.low_turnaround is None or isinstance(found, Refusal):
        return found
    if not job.low_turnaround:
        return Refusal(RefusalCode.BELOW_GATE, NOT_LOW)
    return Due(found.due_at, False, Gate.LOW_TURNAROUND, 0.0, DueRow.ACCELERATED, found.numbers)
