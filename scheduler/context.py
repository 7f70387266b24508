"""Defines SchedulingContext: everything on which the decision about one request depends. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from domain.apps import CPU, ProcessorType, plan_of
from domain.catalogue import Catalogue
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.units import AppVersionId, Instant, Seconds
from domain.volunteers import Volunteer


@quick_dataclass(frozen=True, slots=True)
class WorkRequest:
    """A host's processors of one type, and how much work the client requests for them.

    `req_s` is in instance-seconds: 0 means no work wanted, 1 means at least one job. `req_instances` is the number of
    idle instances. `estimated_delay_s` is when the first instance is free of endangered jobs.
    """

    processor_type: ProcessorType
    count: int
    req_s: Seconds
    req_instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)


@quick_dataclass(frozen=True, slots=True)
class ClientTask:
    """An unfinished job in the client's queue, of any project, as reported by the client.

    `remaining_s` is computing time; it excludes the time in which the host is off.
    """

    name: str
    report_deadline: Instant
    remaining_s: Seconds
    ncpus: float = 1.0
    gpu_type: ProcessorType | None = None
    gpu_count: float = 0.0


@quick_dataclass(frozen=True, slots=True)
class JobQuota:
    """How many jobs one reply may have under the quotas of the host's record and its shared quotas; why no more."""

    jobs: int
    refusal: Refusal


@quick_dataclass(frozen=True, slots=True)
class SchedulingContext:
    """A work request with everything known about volunteer, host and project at that time.

    `wants` lists GPU types first and the CPU last; unlisted types get no work. `in_progress` is None if the client does
    not report its queue. `resent` is the part of `held` that the client lost and this reply sends again: these jobs are
    not in the client's list, and start from the beginning. `seed` makes the request's random draws repeatable; it is
    logged. `alone_s` is how long the host's work must last without another request: its owner's minimum buffer, or the
    time since its last request if that is longer. `quota` limits the jobs in this reply, None for no limit. `network`
    is the client's network address.
    """

    volunteer: Volunteer
    host: Host
    now: Instant
    catalogue: Catalogue
    wants: tuple[WorkRequest, ...]
    seed: int
    havs: Mapping[AppVersionId, HostAppVersion] = field(default_factory=dict)
    held: tuple[InstanceInProgress, ...] = ()
    resent: tuple[InstanceInProgress, ...] = ()
    in_progress: tuple[ClientTask, ...] | None = None
    sticky_files: frozenset[str] = frozenset()
    alone_s: Seconds = Seconds(0.0)
    quota: JobQuota | None = None
    network: str = ""


BELIEVED_AT_FIRST = 64  # processors of one type that are accepted before the host has validated results


@quick_dataclass(frozen=True, slots=True)
class RemainingDemand:
    """The demand that is not met yet: instance-seconds, idle instances, and how many more jobs limits allow.

    `had` and `had_gated` count the jobs of this type on the host, including jobs in this reply; a tight job is gated.
    """

    seconds: float
    instances: float
    jobs: int
    had: int = 0
    had_gated: int = 0

    @property
    def open(self) -> bool:
        """Return whether another job is wanted and allowed.

        >>> [RemainingDemand(*terms).open for terms in ((1.0, 0.0, 8), (0.0, 2.0, 8), (0.0, 0.0, 8), (9.0, 2.0, 0))]
        [True, True, False, False]
        """
        return self.jobs > 0 and (self.seconds > 0.0 or self.instances > 0.0)

    def after(self, usage: float, runtime_s: Seconds, *, gated: bool) -> RemainingDemand:
        """Return the remaining demand after a job that uses `usage` instances.

        >>> RemainingDemand(1.0, 2.0, 8).after(1.0, Seconds(3600.0), gated=False)
        RemainingDemand(seconds=-3599.0, instances=1.0, jobs=7, had=1, had_gated=0)
        """
        return RemainingDemand(
            self.seconds - usage * runtime_s,
            self.instances - usage,
            self.jobs - 1,
            self.had + 1,
            self.had_gated + gated,
        )

    def allowing(self, jobs: int) -> RemainingDemand:
        """Return the same demand with `jobs` jobs allowed."""
        return RemainingDemand(self.seconds, self.instances, jobs, self.had, self.had_gated)

    def of_idle(self) -> RemainingDemand:
        """Return the demand of processors that are entirely idle now, without work to queue.

        >>> RemainingDemand(9000.0, 2.5, 8).of_idle()
        RemainingDemand(seconds=0.0, instances=2.0, jobs=8, had=0, had_gated=0)
        """
        return RemainingDemand(0.0, float(int(max(0.0, self.instances))), self.jobs, self.had, self.had_gated)

    def has_room_for_gated(self, usage: float, runtime_s: Seconds, fraction: float, drawn: float) -> bool:
        """Return whether one more gated job stays within the share of the host's jobs that may be gated.

        gated + 1 <= fraction * (jobs it has + jobs still to be sent), where the latter is the demand divided by this
        job's length. If that allows less than one job, the host gets a gated job in this share of its requests: if
        `drawn`, a number in [0, 1), is below `fraction`.

        >>> need = RemainingDemand(seconds=4 * 3600.0, instances=0.0, jobs=8)
        >>> one = need.after(1.0, Seconds(3600.0), gated=True)
        >>> two = one.after(1.0, Seconds(3600.0), gated=True)
        >>> [n.has_room_for_gated(1.0, Seconds(3600.0), 0.5, drawn=0.9) for n in (need, one, two)]
        [True, True, False]
        >>> [RemainingDemand(1.0, 0.0, 8).has_room_for_gated(1.0, Seconds(3600.0), 0.5, drawn) for drawn in (0.2, 0.7)]
        [True, False]
        """
        by_seconds = self.seconds / (usage * runtime_s) if usage * runtime_s > 0 else self.seconds
        to_send = min(float(self.jobs), max(1.0, by_seconds, self.instances / usage))
        allowed = math.floor(fraction * (self.had + math.ceil(to_send)) + 1e-9)
        if not allowed and not self.had_gated:
            return drawn < fraction
        return self.had_gated + 1 <= allowed


def demand_of(want: WorkRequest, context: SchedulingContext, *, sent: int) -> RemainingDemand | Refusal:
    """Return the number of jobs and the amount that may be sent for one processor type, or the refusal at a limit.

    Limits: jobs per request and processor, jobs in progress per processor, the limit that the volunteer or operators
    set for the whole host, and the shared quotas. `sent` is the number of jobs of other types in this reply.
    """
    settings = context.catalogue.settings.scheduler
    kind, count = want.processor_type, believed(max(1, want.count), context.havs)
    versions = context.catalogue.versions
    held = [one for one in context.held if plan_of(versions, one.app_version_id).processor_type == kind]
    per_processor = settings.in_progress_per_cpu if kind == CPU else settings.in_progress_per_gpu
    most = per_processor * count
    if len(held) >= most:
        return _limit_reached(f"{kind}: {len(held)} jobs in progress, limit {most}")
    jobs = min(settings.jobs_per_request * count, most - len(held))
    wish, total = context.volunteer.max_jobs, len(context.held) + sent
    if wish and total >= wish:
        return _limit_reached(f"{kind}: {total} jobs in progress, limit of this host {wish}")
    if wish:
        jobs = min(jobs, wish - total)
    quota = context.quota
    if quota is not None:
        if sent >= quota.jobs:
            return quota.refusal
        jobs = min(jobs, quota.jobs - sent)
    return RemainingDemand(want.req_s, want.req_instances, jobs, len(held), _gated(held))


def believed(claimed: int, havs: Mapping[AppVersionId, HostAppVersion]) -> int:
    """Return the processor count used for a host's limits: the reported count, at most its number of validated results.

    Reported counts up to BELIEVED_AT_FIRST are always accepted. Client data cannot be verified: without this limit, a
    client that reports 4096 CPUs would get 32,768 jobs at its first request. A client that really has them gets 512
    jobs first, and all 4096 processors are accepted in the next round.

    >>> believed(8, {}), believed(4096, {}), believed(4096, {1: HostAppVersion(1, 1, n_valid=512)})
    (8, 64, 512)
    """
    if claimed <= BELIEVED_AT_FIRST:
        return claimed
    return min(claimed, max(BELIEVED_AT_FIRST, sum(hav.n_valid for hav in havs.values())))


def _limit_reached(detail: str) -> Refusal:
    return Refusal(RefusalCode.IN_PROGRESS_LIMIT, detail)


def _gated(held: Iterable[InstanceInProgress]) -> int:
    return sum(1 for one in held if one.gated or one.tight)
