"""Manages leases on hosts, backfills jobs around them, and limits displacement of a host's work. Pure.

A host that could run a wide job with reserved slots (decision 0046), but is currently too busy, is leased to the job's
batch from the time at which enough processors are free. Until it gets such a job, it gets only jobs that end before the
lease begins or leave enough processors free. Displacement is checked only with `ordering.displace`: a tight job must
not delay the host's other work too much. Only instances on this host count as their owners' work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from domain.apps import CPU, ProcessorType, plan_of
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode, codes_where
from domain.reservations import Lease
from domain.units import BatchId, Instant, Seconds
from priority.big_jobs import CoreUse, lease, lease_conflict
from priority.displacement import DisplacingJob, UnderWay, veto
from scheduler.busy import HostLoad, Timeline, cpus_of, usage_of
from scheduler.context import ClientTask, SchedulingContext

BUSY = codes_where(lambda traits: traits.ends_when_idle)
LEAST_CORES = 2.0  # jobs on a single processor need no lease


def lease_of(context: SchedulingContext) -> Lease | None:
    """Return the host's lease; None if the lease was already used, which the catalogue shows only later."""
    found = context.catalogue.reserved.leases.get(context.host.host_id)
    if found is None or not found.holds(context.now):
        return None
    sent = (one.sent_at >= found.made_at for one in context.held if one.batch_id == found.batch_id)
    return None if any(sent) else found


def may_be_leased(context: SchedulingContext, batch_id: BatchId) -> bool:
    """Return whether the host may be leased to a batch: the batch has reserved slots, and neither has or recently had a
    lease.
    """
    reserved = context.catalogue.reserved
    if batch_id not in reserved.kept or context.host.host_id in reserved.leases:
        return False
    return reserved.lease_for(batch_id, context.now) is None


@quick_dataclass(frozen=True, slots=True)
class Wide:
    """A job that the host could run if it were idle: the processors that the job occupies, and its R_q."""

    batch_id: BatchId
    usage: float
    safe_runtime_s: Seconds


def new_lease(wide: Wide, queue: Timeline, context: SchedulingContext, kind: ProcessorType) -> Lease | None:
    """Return a lease for such a job; None if it needs only one processor or would have to wait too long.

    `queue` has the time at which each processor is free of all work, including the work in this reply.
    """
    settings, now = context.catalogue.settings.ordering, context.now
    cores = float(math.ceil(wide.usage))
    made = lease(
        batch_id=wide.batch_id,
        cores=cores,
        limit_s=wide.safe_runtime_s,
        host_id=context.host.host_id,
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
    held: Lease, queue: Timeline, context: SchedulingContext, *, job: Sending, wait_s: Seconds
) -> Refusal | None:
    """Return why a job that would start in `wait_s` does not fit around a lease, None if it does."""
    why = lease_conflict(
        held,
        cores=float(math.ceil(job.usage)),
        limit_s=Seconds(wait_s + job.runtime_s),
        host_cores=float(len(queue.instances)),
        under_way=taken_of(queue, context.now),
        now=context.now,
        slack_s=context.catalogue.settings.ordering.lease_slack_s,
    )
    return None if why is None else Refusal(RefusalCode.LEASED, why)


def taken_of(queue: Timeline, now: Instant) -> list[CoreUse]:
    """Return the times during which processors are used. A processor counts as occupied until it is entirely free."""
    return [CoreUse(number, 1.0, now, Instant(now + parts[-1])) for number, parts in enumerate(queue.instances)]


# ---- displacement

LEAST_SHARE = 0.01  # of the time a host computes, so that remaining times stay finite


@quick_dataclass(frozen=True, slots=True)
class Sending:
    """A job for this host, with its batch, processors, runtime and due date."""

    batch_id: BatchId
    processor_type: ProcessorType
    usage: float
    runtime_s: Seconds
    due_at: Instant


def displacement_refusal(job: Sending, given: Sequence[Sending], context: SchedulingContext) -> Refusal | None:
    """Return why a tight job may not displace the host's work, including `given` jobs of this reply; None if it may."""
    kind = job.processor_type
    owners = Counter([one.batch_id for one in context.held] + [one.batch_id for one in given])
    work = list(
        _reported_work(context, kind, owners) if context.in_progress is not None else _held(context, kind, owners)
    )
    work += [_given(one, context.now, owners) for one in given if one.processor_type == kind]
    why = veto(
        DisplacingJob(job.usage, job.runtime_s, job.due_at, owners[job.batch_id]),
        work,
        host_cores=float(_processors(context, kind)),
        now=context.now,
        most_stretched=context.catalogue.settings.ordering.displace_factor,
    )
    return None if why is None else Refusal(RefusalCode.DISPLACES, why)


def _reported_work(
    context: SchedulingContext, kind: ProcessorType, owners: Mapping[BatchId, int]
) -> Iterator[UnderWay]:
    """Yield the jobs that the client reports. Of other projects' jobs, only the remaining time is known."""
    host, ours = context.host, {one.name: one for one in context.held}
    share = max(LEAST_SHARE, host.cpu_availability_fraction if kind == CPU else host.gpu_availability_fraction)
    for one in context.in_progress or ():
        if (one.gpu_type or CPU) == kind:
            left_s = Seconds(one.remaining_s / share)
            yield _under_way(one, ours.get(one.name), left_s, context.now, owners)


def _under_way(
    one: ClientTask, ours: InstanceInProgress | None, left_s: Seconds, now: Instant, owners: Mapping[BatchId, int]
) -> UnderWay:
    limit_s = left_s if ours is None else max(left_s, ours.est_runtime_s)
    cores = max(1.0, cpus_of(one, ours)) if one.gpu_type is None else one.gpu_count
    running = 1 if ours is None else owners[ours.batch_id]
    return UnderWay(one.name, cores, left_s, limit_s, one.report_deadline, now, running)


def _held(context: SchedulingContext, kind: ProcessorType, owners: Mapping[BatchId, int]) -> Iterator[UnderWay]:
    """Yield the jobs in progress that the server knows. Each is assumed to take R from its dispatch."""
    for one in context.held:
        plan = plan_of(context.catalogue.versions, one.app_version_id, one.ncpus)
        if plan.processor_type == kind:
            limit_s, running = one.est_runtime_s, owners[one.batch_id]
            yield UnderWay(one.name, usage_of(plan), limit_s, limit_s, one.due_at, one.sent_at, running)


def _given(one: Sending, now: Instant, owners: Mapping[BatchId, int]) -> UnderWay:
    name = f"a job of batch {one.batch_id} in this reply"
    return UnderWay(name, one.usage, one.runtime_s, one.runtime_s, one.due_at, now, owners[one.batch_id])


def _processors(context: SchedulingContext, kind: ProcessorType) -> int:
    if kind == CPU:
        return context.host.ncpus
    return max(1, sum(gpu.count for gpu in context.host.coprocessors if gpu.type == kind))


# ---- one request


class HostGuard:
    """Refuses jobs that would delay the host's lease or displace too much of its work."""

    def __init__(self, context: SchedulingContext) -> None:
        self._context = context
        self.lease: Lease | None = lease_of(context) if context.catalogue.reserved.leases else None
        self.made: Lease | None = None  # by this request
        self.held_back: dict[tuple[int, ProcessorType], Seconds] = {}  # R of groups (by index) refused for the lease
        self.fills: set[int] = set()  # indexes of groups that fill idle processors in spite of the lease
        self._displaces = context.catalogue.settings.ordering.displace
        self.is_active = self._displaces or self.lease is not None  # whether there is anything to check
        self._given: list[Sending] = []  # in this reply

    def refusal(self, place: int, job: Sending, load: HostLoad, *, wait_s: Seconds, is_tight: bool) -> Refusal | None:
        """Return why a job that would start in `wait_s` is refused; None if it delays and displaces nothing."""
        held, kind = self.lease, job.processor_type
        if held is not None and kind == held.processor_type and job.batch_id != held.batch_id:
            why = around_refusal(held, load.busy().queue[kind], self._context, job=job, wait_s=wait_s)
            if why is not None and place not in self.fills:
                self.held_back[place, kind] = job.runtime_s
                return why
        if not self._displaces or not is_tight:
            return None
        return displacement_refusal(job, self._given, self._context)

    def given(self, job: Sending) -> None:
        """Count a job that is sent in this reply."""
        if self._displaces:
            self._given.append(job)

    def promise(self, wide: Wide, queue: Timeline, kind: ProcessorType) -> None:
        """Lease the host for a job that it could run after its current work, if that helps."""
        self.lease = self.made = new_lease(wide, queue, self._context, kind)
        self.is_active = True

    def may_idle(self, kind: ProcessorType) -> bool:
        """Return whether processors of this type may stay idle: no lease uses them, or the lease begins soon."""
        held, slack_s = self.lease, self._context.catalogue.settings.ordering.lease_slack_s
        return held is None or held.processor_type != kind or held.start_at - self._context.now <= slack_s
