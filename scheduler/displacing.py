"""Would a tight job make this host put other work off too much? Pure. PRIORITY section 7, item 13.

Asked only with `ordering.displace`. Owners are counted on this host: what a submitter has elsewhere is not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from domain.apps import CPU, PlanClass, ProcessorType
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.units import BatchId, Instant, Seconds
from priority.displacement import DisplacingJob, UnderWay, may_displace
from scheduler.asking import Asking, HeldElsewhere
from scheduler.busy import usage_of

LEAST_SHARE = 0.01  # of the time a host computes, so that nothing takes for ever


@quick_dataclass(frozen=True, slots=True)
class Sending:
    """A job for this host: of which batch, on how many processors of which type, for how long, and when it is due."""

    batch_id: BatchId
    processor_type: ProcessorType
    usage: float
    runtime_s: Seconds
    due_at: Instant


def displacement_refusal(job: Sending, given: Sequence[Sending], asking: Asking) -> Refusal | None:
    """Why a tight job may not displace what the host has, `given` in this reply included; None when it may."""
    kind = job.processor_type
    owners = Counter([one.batch_id for one in asking.held] + [one.batch_id for one in given])
    work = list(_told(asking, kind, owners) if asking.in_progress is not None else _held(asking, kind, owners))
    work += [_given(one, asking.now, owners) for one in given if one.processor_type == kind]
    found = may_displace(
        DisplacingJob(job.usage, job.runtime_s, job.due_at, owners[job.batch_id]),
        work,
        host_cores=float(_processors(asking, kind)),
        now=asking.now,
        most_stretched=asking.catalogue.settings.ordering.displace_factor,
    )
    return None if found.send else Refusal(RefusalCode.DISPLACES, found.because)


def _told(asking: Asking, kind: ProcessorType, owners: Mapping[BatchId, int]) -> Iterator[UnderWay]:
    """What the client says it has, of other projects too; of those nothing but the time left is known."""
    host, ours = asking.host, {one.name: one for one in asking.held}
    share = max(LEAST_SHARE, host.cpu_availability_fraction if kind == CPU else host.gpu_availability_fraction)
    for one in asking.in_progress or ():
        if (one.gpu_type or CPU) == kind:
            left_s = Seconds(one.remaining_s / share)
            yield _under_way(one, ours.get(one.name), left_s, asking.now, owners)


def _under_way(
    one: HeldElsewhere, ours: InstanceInProgress | None, left_s: Seconds, now: Instant, owners: Mapping[BatchId, int]
) -> UnderWay:
    limit_s = left_s if ours is None else max(left_s, ours.est_runtime_s)
    cores = max(1.0, one.ncpus) if one.gpu_type is None else one.gpu_count
    running = 1 if ours is None else owners[ours.batch_id]
    return UnderWay(one.name, cores, left_s, limit_s, one.report_deadline, now, running)


def _held(asking: Asking, kind: ProcessorType, owners: Mapping[BatchId, int]) -> Iterator[UnderWay]:
    """What the server knows the host has: each R long, from its dispatch on."""
    for one in asking.held:
        version = asking.catalogue.versions.get(one.app_version_id)
        plan = version.plan_class if version is not None else PlanClass("")
        if plan.processor_type == kind:
            limit_s, running = one.est_runtime_s, owners[one.batch_id]
            yield UnderWay(one.name, usage_of(plan), limit_s, limit_s, one.due_at, one.sent_at, running)


def _given(one: Sending, now: Instant, owners: Mapping[BatchId, int]) -> UnderWay:
    name = f"a job of batch {one.batch_id} in this reply"
    return UnderWay(name, one.usage, one.runtime_s, one.runtime_s, one.due_at, now, owners[one.batch_id])


def _processors(asking: Asking, kind: ProcessorType) -> int:
    if kind == CPU:
        return asking.host.ncpus
    return max(1, sum(gpu.count for gpu in asking.host.coprocessors if gpu.type == kind))
