"""Which class of hosts alike does a job belong to that none has yet? Pure. PRIORITY section 7, item 18.

The first instance fixes the class of all others. Until then a job waits for hosts of the class where it is complete
soonest behind the others of its batch: a large batch is spread over classes so that all are done at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from domain.host_classes import NO_STANDINGS, ClassesByApp, ClassStanding, Standings
from domain.jobs import Ready, draw
from domain.refusals import Refusal, RefusalCode
from domain.units import Flop, InstanceId, Seconds
from priority.node_groups import HostClass, drawn_class, shares
from scheduler.ports import SlotGroup


def uncommitted_refusal(slot: Ready, group: SlotGroup, classes: ClassesByApp, host_class: int) -> Refusal | None:
    """Why a job without a class is not for hosts of this class; None where classes have not been looked at, too.

    Which jobs are whose is drawn once per job, not per request.
    """
    job_class, batch = group.job_class, group.batch
    of_type = classes.of.get((batch.app_id, job_class.hr_type), NO_STANDINGS)
    found = shares_of(of_type, job_class.fpops_est_flop, batch.counts.unsent, job_class.quorum)
    chosen = drawn_class(found, draw(InstanceId(slot.job_id)))
    if chosen is None or int(chosen) == host_class:
        return None
    terms = (int(chosen), host_class, 100.0 * found.get(str(host_class), 0.0))
    return Refusal(RefusalCode.HR_CLASS, CHOSEN, terms)


CHOSEN = (
    "job is for hosts of class {0}, where it is complete soonest; this one is of class {1}, which has {2:.0f} % of them"
)


@lru_cache(maxsize=256)
def shares_of(classes: Standings, job_flop: Flop, jobs: int, replicas: int) -> Mapping[str, float]:
    """The share of each class in so many jobs. A class of fewer hosts than a job has replicas gets none."""
    alike = [_alike(one, job_flop) for one in classes]
    return shares(alike, Flop(jobs * job_flop), replicas=replicas)


def _alike(one: ClassStanding, job_flop: Flop) -> HostClass:
    """Turnaround: until one of its hosts calls again, and R on a core of theirs."""
    per_core = one.flop_per_s / one.cores if one.cores > 0.0 else 0.0
    runtime_s = job_flop / per_core if per_core > 0.0 else 0.0
    return HostClass(str(one.hr_class), one.queued_flop, one.flop_per_s, Seconds(one.interval_s + runtime_s), one.hosts)
