"""Which slots of a group may a host have, one by one? Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

from domain.jobs import Ready
from domain.refusals import Refusal, RefusalCode
from domain.units import JobId
from scheduler.asking import Asking
from scheduler.feasibility import hr_class_of, hr_refusal
from scheduler.ports import JobArray, SlotGroup
from scheduler.redundancy import uncommitted_refusal


def after_retries(slots: Sequence[Ready]) -> int:
    """Where the slots without retries begin; they come last.

    >>> from domain.jobs import Ready
    >>> after_retries([Ready(1, 1, 1, 1, retries=2), Ready(2, 2, 1, 1, retries=1), Ready(3, 3, 1, 1)])
    2
    """
    if slots[-1].retries > 0:
        return len(slots)
    return bisect_left(slots, 0, key=lambda slot: -slot.retries)


def job_refusal(
    slot: Ready, group: SlotGroup, asking: Asking, array: JobArray, *, in_reply: Collection[JobId]
) -> Refusal | None:
    """The checks of a single job: its app's limits per host and volunteer, hosts alike. `in_reply`: given already."""
    if slot.job_id in in_reply:
        return Refusal(RefusalCode.SAME_HOST, "job {0} has another instance in this reply", (slot.job_id,))
    if slot.hr_class:
        refusal = hr_refusal(slot, hr_class_of(asking.host, group.job_class.hr_type))
        if refusal is not None:
            return refusal
    elif group.job_class.hr_type:
        host_class = hr_class_of(asking.host, group.job_class.hr_type)
        refusal = uncommitted_refusal(slot, group, asking.catalogue.host_classes, host_class)
        if refusal is not None:
            return refusal
    known = array.may_have(slot, asking.host.host_id, asking.volunteer.volunteer_id)
    return None if known is None else _spread_refusal(known, slot, group, asking)


def _spread_refusal(known: RefusalCode, slot: Ready, group: SlotGroup, asking: Asking) -> Refusal | None:
    """Why the job is not for a host that has had an instance (SAME_HOST), or whose volunteer has (SAME_VOLUNTEER)."""
    spread = asking.catalogue.apps[group.batch.app_id].spread(group.job_class.quorum, slot.copies)
    if spread.per_volunteer:
        return Refusal(
            RefusalCode.SAME_VOLUNTEER,
            "job {0} needs another volunteer: this one has had an instance of it",
            (slot.job_id,),
        )
    is_host = known is RefusalCode.SAME_HOST
    if is_host and (spread.per_host or any(held.job_id == slot.job_id for held in asking.held)):
        return Refusal(
            RefusalCode.SAME_HOST, "job {0} needs another host: this one has had an instance of it", (slot.job_id,)
        )
    return None
