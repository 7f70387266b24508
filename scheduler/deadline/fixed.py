"""The rule `fixed`: every job is due at its delay bound. Pure."""

from __future__ import annotations

from domain.due_terms import DueRow
from domain.ranking import Gate
from domain.refusals import Refusal
from domain.settings import DeadlineSettings
from domain.units import Instant
from scheduler.deadline.inputs import Due, DueInputs, Moment, too_slow


def due(moment: Moment, job: DueInputs, _settings: DeadlineSettings) -> Due | Refusal:
    """Return now + D if the host finishes all its work by then, otherwise the refusal."""
    done_s = moment.queue_s + job.runtime_s
    if done_s > job.bound_s:
        return too_slow("queued work", moment.queue_s, "runtime", job.runtime_s, job.bound_s)
    return Due(Instant(moment.now + job.bound_s), False, Gate.NONE, 0.0, DueRow.FIXED, (done_s, job.bound_s))
