"""Computes when a host's processors become free of deadline-endangered work, and of all work. Pure.

List scheduling with one free time per processor instance, in seconds from now. A job that needs k instances starts when
the k least busy ones are free, and occupies all k (docs/formulas.md). `start` covers endangered and tight work, which
runs first; `queue` covers all work.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import starmap
from operator import itemgetter

from domain.apps import CPU, AppVersion, PlanClass, ProcessorType, plan_of
from domain.hosts import Host
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.ranking import Percentile
from domain.units import AppVersionId, Instant, Seconds
from scheduler.context import ClientTask, SchedulingContext, WorkRequest
from scheduler.deadline.inputs import Moment

LEAST_SHARE = 0.01  # of a device: smaller shares of jobs are rounded up to this
MOST_PARTS = 12  # a device is divided into at most this many equal parts for jobs that share it


@quick_dataclass(frozen=True, slots=True)
class Timeline:
    """Free times of the instances of one processor type, in seconds from now.

    Each instance has the same number of equal parts (1 unless jobs share a device), with their free times in ascending
    order; instances are sorted by the time at which they are entirely free.
    """

    instances: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, free_s: Iterable[float]) -> Timeline:
        """Return a timeline of undivided instances that become free at these times."""
        return cls(tuple((time_s,) for time_s in sorted(free_s)))

    def start_s(self, usage: float) -> Seconds:
        """Return when a job that needs `usage` instances could start; the last instance's free time if there are fewer.

        >>> four = Timeline.of([0.0, 10.0, 20.0, 30.0])
        >>> four.start_s(1), four.start_s(3), four.start_s(9)
        (0.0, 20.0, 30.0)
        >>> Timeline.of([]).start_s(1)
        0.0
        """
        if not self.instances:
            return Seconds(0.0)
        if usage <= 0.5:
            shared, part = self._divided(usage), self._parts_used(usage) - 1
            return Seconds(min(times[part] for times in shared.instances))
        needed = 1 if usage <= 1.0 else min(math.ceil(usage), len(self.instances))
        return Seconds(self.instances[needed - 1][-1])

    def after(self, usage: float, runtime_s: float, not_before_s: float = -math.inf) -> Timeline:
        """Return the timeline after queueing a job of `runtime_s` on the `usage` least busy instances.

        >>> Timeline.of([0.0, 10.0, 20.0]).after(2, 5.0).instances
        ((15.0,), (15.0,), (20.0,))
        >>> Timeline.of([0.0]).after(0.5, 5.0).instances
        ((0.0, 5.0),)
        """
        instances = self.instances
        if not instances:
            return self
        if usage <= 0.5:
            return self._shared_after(usage, runtime_s, not_before_s)
        needed = 1 if usage <= 1.0 else min(math.ceil(usage), len(instances))
        end_s = max(instances[needed - 1][-1], not_before_s) + runtime_s
        return Timeline(_inserted(instances[needed:], (end_s,) * len(instances[0]), needed))

    def at_least(self, other: Timeline) -> Timeline:
        """Return the later free time of each pair. Both timelines are in ascending order.

        >>> Timeline.of([0.0, 9.0]).at_least(Timeline.of([4.0, 5.0])).instances
        ((4.0,), (9.0,))
        """
        parts = math.lcm(self.parts, other.parts)
        if parts == 1:
            return Timeline(tuple(starmap(max, zip(self.instances, other.instances, strict=True))))
        pairs = zip(self.in_parts(parts).instances, other.in_parts(parts).instances, strict=True)
        return Timeline(tuple(tuple(map(max, mine, theirs)) for mine, theirs in pairs))

    def clamped(self) -> Timeline:
        """Return a copy with all free times in the past moved to now.

        >>> Timeline.of([-math.inf, -5.0, 10.0]).clamped().instances
        ((0.0,), (0.0,), (10.0,))
        """
        if self.parts == 1:
            past = bisect_left(self.instances, (0.0,))
            return Timeline(((0.0,),) * past + self.instances[past:]) if past else self
        return Timeline(tuple(tuple(max(0.0, time_s) for time_s in parts) for parts in self.instances))

    @property
    def parts(self) -> int:
        """Return the number of parts of each instance."""
        return len(self.instances[0]) if self.instances else 1

    def in_parts(self, parts: int) -> Timeline:
        """Return the same free times with each instance in `parts` parts, a multiple of the current number."""
        times = parts // self.parts
        if times == 1:
            return self
        return Timeline(tuple(tuple(t for t in part for _ in range(times)) for part in self.instances))

    def _parts_used(self, usage: float) -> int:
        """Return how many parts of one device a sharing job occupies."""
        return max(1, self._divided(usage).parts // _sharers(usage))

    def _divided(self, usage: float) -> Timeline:
        """Return the same free times, with instances divided so finely that a sharing job occupies whole parts."""
        wanted = math.lcm(self.parts, _sharers(usage))
        return self.in_parts(wanted if wanted <= MOST_PARTS else self.parts)

    def _shared_after(self, usage: float, runtime_s: float, not_before_s: float) -> Timeline:
        divided, used = self._divided(usage), self._parts_used(usage)
        chosen = min(range(len(divided.instances)), key=lambda i: (divided.instances[i][used - 1], i))
        parts = divided.instances[chosen]
        end_s = max(parts[used - 1], not_before_s) + runtime_s
        after = tuple(sorted((*parts[used:], *((end_s,) * used))))
        others = (*divided.instances[:chosen], *divided.instances[chosen + 1 :])
        return Timeline(_inserted(others, after, 1))


def _inserted(
    instances: tuple[tuple[float, ...], ...], one: tuple[float, ...], times: int
) -> tuple[tuple[float, ...], ...]:
    """Insert `one` into the sorted instances, `times` times."""
    place = bisect_right(instances, one) if len(one) == 1 else bisect_right(instances, one[-1], key=itemgetter(-1))
    return instances[:place] + (one,) * times + instances[place:]


def _sharers(usage: float) -> int:
    """Return the number of jobs that share one device: m = floor(1 / usage)."""
    return min(MOST_PARTS, math.floor(1.0 / usage + 1e-9)) if usage > 0 else MOST_PARTS


@quick_dataclass(frozen=True, slots=True)
class Busy:
    """A host's busy times per processor type, as two timelines."""

    start: Mapping[ProcessorType, Timeline]
    queue: Mapping[ProcessorType, Timeline]

    def start_s(self, plan: PlanClass) -> Seconds:
        """Return the seconds from now until a tight job of this plan class could start."""
        return self.start[plan.processor_type].start_s(usage_of(plan))

    def queue_s(self, plan: PlanClass) -> Seconds:
        """Return the seconds from now until such a job could start after all the host's work."""
        return self.queue[plan.processor_type].start_s(usage_of(plan))

    def with_job(self, plan: PlanClass, runtime_s: float, *, tight: bool) -> Busy:
        """Return the busy times with this job added. Only a tight job delays later tight ones."""
        queue, start = dict(self.queue), self.start
        _charge(queue, plan, runtime_s, -math.inf)
        if tight:
            start = dict(self.start)
            _charge(start, plan, runtime_s, -math.inf)
        return Busy(start, queue)


def usage_of(plan: PlanClass) -> float:
    """Return how many instances of its processor type a job of this plan class occupies; at least 1 for a CPU job."""
    return max(LEAST_SHARE, plan.gpu_count) if plan.gpu_type is not None else max(1.0, plan.ncpus)


def _charge(timelines: dict[ProcessorType, Timeline], plan: PlanClass, runtime_s: float, not_before_s: float) -> None:
    """Add a job to the timelines. A GPU job occupies CPUs only if it uses at least one whole CPU."""
    kind = plan.processor_type
    timeline = timelines.get(kind)
    if timeline is not None:
        timelines[kind] = timeline.after(usage_of(plan), runtime_s, not_before_s)
    if plan.gpu_type is not None and plan.ncpus >= 1.0:
        timelines[CPU] = timelines[CPU].after(plan.ncpus, runtime_s, not_before_s)


@quick_dataclass(frozen=True, slots=True)
class QueuedWork:
    """A job on a host: what it occupies, its runtime, and its earliest start in seconds from now."""

    plan: PlanClass
    runtime_s: float
    since_s: float
    tight: bool


def held_work(
    held: Iterable[InstanceInProgress], versions: Mapping[AppVersionId, AppVersion], *, now: Instant
) -> tuple[QueuedWork, ...]:
    """Return the jobs in progress known to the server, oldest first. Each runs for R and starts no earlier than its
    dispatch.
    """
    return tuple(
        QueuedWork(plan_of(versions, one.app_version_id, one.ncpus), one.est_runtime_s, one.sent_at - now, one.tight)
        for one in sorted(held, key=lambda one: (one.sent_at, one.instance_id))
    )


def reported_work(
    in_progress: Iterable[ClientTask], held: Iterable[InstanceInProgress], host: Host
) -> tuple[QueuedWork, ...]:
    """Return the jobs reported by the client, earliest deadline first, with remaining time divided by availability."""
    ours = {one.name: one for one in held}
    works = []
    for one in sorted(in_progress, key=lambda one: (one.report_deadline, one.name)):
        known = ours.get(one.name)
        plan = _reported_plan(cpus_of(one, known), one.gpu_type, one.gpu_count)
        tight = known is not None and known.tight
        share = host.cpu_availability_fraction if one.gpu_type is None else host.gpu_availability_fraction
        works.append(QueuedWork(plan, max(0.0, one.remaining_s) / max(0.01, share), 0.0, tight))
    return tuple(works)


def cpus_of(one: ClientTask, ours: InstanceInProgress | None) -> float:
    """Return the CPUs of a reported job: the client's figure, but at least what a CPU job of this project needs."""
    return one.ncpus if ours is None or one.gpu_type is not None else max(one.ncpus, ours.ncpus)


@lru_cache(maxsize=256)
def _reported_plan(ncpus: float, gpu_type: ProcessorType | None, gpu_count: float) -> PlanClass:
    """Return the plan class of a reported job. Cached, because most jobs have the same one."""
    return PlanClass("", ncpus=ncpus, gpu_type=gpu_type, gpu_count=gpu_count)


def busy_of(wants: Iterable[WorkRequest], host: Host, work: Iterable[QueuedWork]) -> Busy:
    """Return a host's busy times at the start of its request.

    `start`: idle instances are free now; the rest at the client's `estimated_delay` (for its least busy instance, a
    lower bound), or when the host's tight work is done, if that is later. `queue`: all work in progress,
    list-scheduled, and never less than `start`. A job sent earlier may already have been running since its dispatch.

    >>> from domain.jobs import InstanceInProgress
    >>> want = WorkRequest(CPU, 2, Seconds(1.0), req_instances=1.0, estimated_delay_s=Seconds(600.0))
    >>> works = (QueuedWork(PlanClass(""), 3600.0, -600.0, False),)
    >>> busy = busy_of((want,), Host(1, 1, ncpus=2), works)
    >>> busy.start[CPU].instances, busy.queue[CPU].instances
    (((0.0,), (600.0,)), ((0.0,), (3000.0,)))
    """
    by_type = {want.processor_type: want for want in wants}
    counts = {CPU: host.ncpus}
    for gpu in host.coprocessors:
        counts[gpu.type] = gpu.count
    for kind, want in by_type.items():
        counts[kind] = want.count
    idle = {kind: min(count, _idle(by_type.get(kind))) for kind, count in counts.items()}
    start = {kind: _client_timeline(by_type.get(kind), count, idle[kind]) for kind, count in counts.items()}
    works = tuple(work)
    if not works:  # most hosts that request work have none
        return Busy(start, start)
    tight = tuple(one for one in works if one.tight)
    if tight:
        for kind, busy in _scheduled({kind: counts[kind] - idle[kind] for kind in counts}, tight).items():
            free_now = ((0.0,) * busy.parts,) * idle[kind]
            start[kind] = start[kind].at_least(Timeline(free_now + busy.instances))
    queue = _scheduled(counts, works)
    return Busy(start, {kind: queue[kind].at_least(start[kind]) for kind in counts})


def _idle(want: WorkRequest | None) -> int:
    """Return the number of completely idle instances; 1.9 idle CPUs count as one."""
    return int(max(0.0, want.req_instances)) if want is not None else 0


def _client_timeline(want: WorkRequest | None, count: int, idle: int) -> Timeline:
    delay_s = max(0.0, want.estimated_delay_s) if want is not None else 0.0
    return Timeline(((0.0,),) * idle + ((delay_s,),) * (count - idle))


def _scheduled(counts: Mapping[ProcessorType, int], works: Iterable[QueuedWork]) -> Mapping[ProcessorType, Timeline]:
    """Return the free times of `counts` instances after running this work in this order."""
    timelines = {kind: Timeline(((-math.inf,),) * count) for kind, count in counts.items()}
    for work in works:
        _charge(timelines, work.plan, work.runtime_s, work.since_s)
    return {kind: timeline.clamped() for kind, timeline in timelines.items()}


def busy_at_start(context: SchedulingContext) -> Busy:
    """Return busy times from the queue that the client reports or, without one, from the jobs in progress on record.

    Resent jobs are added: the client does not have them yet.
    """
    versions = context.catalogue.versions
    if context.in_progress is None and not context.held:
        return busy_of(context.wants, context.host, ())
    if context.in_progress is not None:
        work = reported_work(context.in_progress, context.held, context.host)
    else:
        resent = {one.instance_id for one in context.resent}
        known = (one for one in context.held if one.instance_id not in resent) if resent else context.held
        work = held_work(known, versions, now=context.now)
    restarted = [replace(one, sent_at=context.now) for one in context.resent]
    return busy_of(context.wants, context.host, (*work, *held_work(restarted, versions, now=context.now)))


class HostLoad:
    """Tracks a host's work, including the jobs already in the reply."""

    def __init__(self, context: SchedulingContext) -> None:
        self._context = context
        self._busy: Busy | None = None  # as of the last call of `busy`; most requests never call it again
        self._pending: list[tuple[PlanClass, Seconds, bool]] = []  # jobs added since then
        self._moments: dict[tuple[AppVersionId, float], Moment] = {}  # by version and CPUs
        self.disk_bytes = context.host.disk_free_bytes  # still available to this project
        self.sent: dict[AppVersionId, int] = {}  # jobs in this reply

    def busy(self) -> Busy:
        """Return the host's busy times."""
        busy = self._busy or busy_at_start(self._context)
        for plan, runtime_s, tight in self._pending:
            busy = busy.with_job(plan, runtime_s, tight=tight)
        self._pending.clear()
        self._busy = busy
        return busy

    def moment(self, version: AppVersion, plan: PlanClass, percentile: Percentile) -> Moment:
        """Return the host's state for a job of this version that runs with this plan class."""
        key = version.app_version_id, plan.ncpus
        found = self._moments.get(key)
        if found is None:
            busy, context = self.busy(), self._context
            found = Moment(context.now, busy.start_s(plan), busy.queue_s(plan), percentile, context.alone_s)
            self._moments[key] = found
        return found

    def add(self, version: AppVersion, plan: PlanClass, runtime_s: Seconds, *, tight: bool, disk_bytes: float) -> int:
        """Add a job of this reply, and return how many jobs of its version the reply has."""
        self._pending.append((plan, runtime_s, tight))
        self._moments.clear()
        self.disk_bytes -= disk_bytes
        count = self.sent[version.app_version_id] = self.sent.get(version.app_version_id, 0) + 1
        return count
