"""The rule `accelerated`: due dates as with `fixed`, plus batch acceleration as in the BOINC reference server. Pure.

domain/acceleration.py defines its hosts, apps and batches; lifecycle/tail.py its extra copies.
"""

from __future__ import annotations

from domain.due_terms import DueRow
from domain.ranking import Gate
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from scheduler.deadline import fixed
from scheduler.deadline.inputs import Due, DueInputs, Moment

NOT_LOW = "accelerated: the batch is nearly complete; its jobs go only to low-turnaround hosts"


def due(moment: Moment, job: DueInputs, settings: DeadlineSettings) -> Due | Refusal:
    """Reserve jobs of an accelerated batch of an accelerable app for low-turnaround hosts. Due dates do not change.

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
