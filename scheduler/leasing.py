"""What is promised of this host's future, and what fits around it? Pure. PRIORITY section 7, item 17.

A host that is able to run a job slots are kept for, but too busy, is promised to it from the instant its work
leaves enough processors free. Until it is sent one, it is given only what ends before, or leaves enough of them.
"""

from __future__ import annotations

import math

from domain.apps import ProcessorType
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.reservations import Lease
from domain.units import BatchId, Instant, Seconds
from priority.big_jobs import CoreUse, fits_around, lease
from scheduler.asking import Asking
from scheduler.busy import Timeline

BUSY = frozenset({RefusalCode.TOO_SLOW, RefusalCode.NOT_YET})  # said to hosts that are able when their work is done
LEAST_CORES = 2.0  # a job on one processor waits for its turn as every other does


def lease_of(asking: Asking) -> Lease | None:
    """The lease that holds the host: not one that has served its purpose, for the catalogue learns that later."""
    found = asking.catalogue.reserved.leases.get(asking.host.host_id)
    if found is None or not found.holds(asking.now):
        return None
    sent = (one.sent_at >= found.made_at for one in asking.held if one.batch_id == found.batch_id)
    return None if any(sent) else found


def may_be_leased(asking: Asking, batch_id: BatchId) -> bool:
    """Whether the host may be promised to a batch: slots are kept for it, and neither has or had a lease of late."""
    reserved = asking.catalogue.reserved
    if batch_id not in reserved.kept or asking.host.host_id in reserved.leases:
        return False
    return reserved.lease_for(batch_id, asking.now) is None


@quick_dataclass(frozen=True, slots=True)
class Wide:
    """A job that the host could run if it were idle: what it occupies, and R_q."""

    batch_id: BatchId
    usage: float
    safe_runtime_s: Seconds


def new_lease(wide: Wide, queue: Timeline, asking: Asking, kind: ProcessorType) -> Lease | None:
    """The lease for such a job; None when it needs one processor only, or would have to wait for too long.

    `queue` is when each processor is free of all work, that of this reply included.
    """
    settings, now = asking.catalogue.settings.ordering, asking.now
    cores = float(math.ceil(wide.usage))
    made = lease(
        batch_id=wide.batch_id,
        cores=cores,
        limit_s=wide.safe_runtime_s,
        host_id=asking.host.host_id,
        host_cores=float(len(queue.instances)),
        under_way=taken_of(queue, now),
        slack_s=settings.lease_slack_s,
        now=now,
        processor_type=kind,
    )
    if made is None or cores < LEAST_CORES or made.start_at - now > settings.reservation_age_s:
        return None
    return made


def around_refusal(
    held: Lease, queue: Timeline, asking: Asking, *, usage: float, wait_s: Seconds, runtime_s: Seconds
) -> Refusal | None:
    """Why a job that would start in `wait_s` and run for `runtime_s` does not fit around a lease; None when it does."""
    fits, why = fits_around(
        held,
        cores=float(math.ceil(usage)),
        limit_s=Seconds(wait_s + runtime_s),
        host_cores=float(len(queue.instances)),
        under_way=taken_of(queue, asking.now),
        now=asking.now,
        slack_s=asking.catalogue.settings.ordering.lease_slack_s,
    )
    return None if fits else Refusal(RefusalCode.LEASED, why)


def may_idle(held: Lease, asking: Asking) -> bool:
    """Whether idle processors may wait for the lease to begin: for as long as its slack, and no longer."""
    return held.start_at - asking.now <= asking.catalogue.settings.ordering.lease_slack_s


def taken_of(queue: Timeline, now: Instant) -> list[CoreUse]:
    """Each processor as taken until it is wholly free."""
    return [CoreUse(number, 1.0, now, Instant(now + parts[-1])) for number, parts in enumerate(queue.instances)]
