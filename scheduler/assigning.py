"""What is written of a job that a host is given. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable

from domain.dispatch import Assignment
from domain.jobs import Ready
from lifecycle.settle import copies_for
from lifecycle.turnaround import timeout_at
from scheduler.asking import Asking
from scheduler.choice import Chosen
from scheduler.feasibility import hr_class_of
from scheduler.ports import SlotGroup
from scheduler.terms import kept_because
from scheduler.verdict import Verdict


def chosen_of(
    asking: Asking, group: SlotGroup, slot: Ready, verdict: Verdict, *, rng: Callable[[], random.Random]
) -> Chosen:
    """The slot's job for the reply to the host that asks."""
    usable = verdict.usable
    assignment = assignment_of(asking, group, slot, verdict, rng=rng)
    return Chosen(assignment, slot, group.batch, group.job_class, usable.version, usable.speed.flop_per_s)


def assignment_of(
    asking: Asking, group: SlotGroup, slot: Ready, verdict: Verdict, *, rng: Callable[[], random.Random]
) -> Assignment:
    """The slot's instance for the host that asks, as the verdict on its class says; `rng` is called only to draw."""
    due, batch, job_class, host = verdict.due, group.batch, group.job_class, asking.host
    return Assignment(
        instance_id=slot.instance_id,
        job_id=slot.job_id,
        batch_id=batch.batch_id,
        job_class_id=job_class.job_class_id,
        app_id=batch.app_id,
        app_version_id=verdict.usable.version.app_version_id,
        host_id=host.host_id,
        volunteer_id=asking.volunteer.volunteer_id,
        sent_at=asking.now,
        due_at=due.due_at,
        timeout_at=timeout_at(asking.now, due.due_at, asking.catalogue.settings.lifecycle),
        est_runtime_s=verdict.runtime_s,
        tight=due.tight,
        because=kept_because(verdict, asking.catalogue.settings.deadline.rule),
        hr_class=hr_class_of(host, job_class.hr_type),
        copies=_copies(asking, group, verdict, rng),
        gated=verdict.gated,
    )


def _copies(asking: Asking, group: SlotGroup, verdict: Verdict, rng: Callable[[], random.Random]) -> int:
    """How many copies check this host's result, where the app replicates by trust."""
    app = asking.catalogue.apps[group.batch.app_id]
    if app.adaptive_copies == 0 or group.job_class.quorum != 1:
        return 0
    hav = asking.havs.get(verdict.usable.version.app_version_id)
    return copies_for(
        hav.consecutive_valid if hav is not None else 0,
        app.adaptive_copies,
        rng=rng(),
        consecutive_valid_infinite=asking.catalogue.settings.ranking.consecutive_valid_infinite,
    )
