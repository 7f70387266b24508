"""Identifies the client of a request, matches it with a host record, and collects its work requests. Pure.
docs/protocol.md#request.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from domain.apps import ANONYMOUS, CPU, ProcessorType, plan_of
from domain.catalogue import Catalogue
from domain.dispatch import RequestKey, RequestView
from domain.hosts import Host
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.restrictions import Restricted, limit_of
from domain.settings import SchedulerSettings, Settings
from domain.units import HOUR_S, AppId, HostId, Instant, Seconds, VolunteerId
from domain.volunteers import Volunteer
from scheduler import sanity
from scheduler.context import ClientTask, SchedulingContext, WorkRequest
from scheduler.held import HeldReview
from scheduler.quota import within_quotas
from scheduler.reports import reported_ids
from wire.messages import InProgress, SchedulerRequest

NO_HOST = HostId(0)
REPEATED_WITHIN_S = HOUR_S  # a client that lost the reply with its new id contacts the server again within this time


class HostCase(StrEnum):
    """How a request was matched with a host record."""

    KNOWN = "known"  # the volunteer's host, with a continued serial number
    FIRST_CONTACT = "first_contact"  # a new client without a host id
    STATE_LOST = "state_lost"  # a client without a host id whose CPID is known
    NOT_THEIRS = "not_theirs"  # a host id that does not exist or belongs to another volunteer
    CLONE = "clone"  # a serial number below the stored one: the client was copied or restored


@quick_dataclass(frozen=True, slots=True)
class Admission:
    """The host record for a request, updated with the client's current description.

    `create`: a new record is needed, and `host.host_id` is 0 until it exists. `tell_id`: the reply must contain the id,
    and the client restarts its serial numbers at 0. `detach`: all jobs in progress on the host are lost. `again`: the
    record was already created for this client, but the reply was lost.
    """

    volunteer: Volunteer
    host: Host
    case: HostCase
    because: str
    detach: bool = False
    again: bool = False

    @property
    def create(self) -> bool:
        return self.host.host_id == NO_HOST

    @property
    def same_record(self) -> bool:
        """Return whether the data read for the host (statistics, jobs in progress) belongs to this record."""
        return self.again or self.case in (HostCase.KNOWN, HostCase.STATE_LOST)

    def may_take_over(self, other: Host) -> bool:
        """Return whether the client, by CPID and name, may list instances of another record of the same computer.

        `other` is the host that the request names. The client was restored from a snapshot, is a copy on a computer
        with the same name, or had an earlier request that was overtaken and mistaken for such a copy's request.
        """
        host = self.host
        return (
            self.case in (HostCase.CLONE, HostCase.KNOWN)
            and bool(host.host_cpid)
            and (host.host_cpid, host.domain_name) == (other.host_cpid, other.domain_name)
        )

    @property
    def tell_id(self) -> bool:
        return self.case is not HostCase.KNOWN


def key_of(request: SchedulerRequest) -> RequestKey:
    """Return the database key of a request. An impossible host id counts as no host id."""
    return RequestKey(
        authenticator_hash=hashlib.sha256(request.authenticator.encode("utf-8", "replace")).digest(),
        host_id=_named_host_id(request),
        host_cpid=sanity.text(request.host.host_cpid),
        instance_ids=reported_ids(request.results),
    )


def _named_host_id(request: SchedulerRequest) -> HostId:
    return HostId(request.host_id) if 0 < request.host_id <= sanity.MOST_INT else NO_HOST


def admit(
    request: SchedulerRequest, view: RequestView, volunteer: Volunteer, *, settings: SchedulerSettings, now: Instant
) -> Admission:
    """Match a request by `volunteer` with a host record.

    Without a host id, the record is the volunteer's newest host with the same CPID, otherwise a new host; if such a
    client has no results at all, all jobs in progress on its host are lost. With an id that is not the volunteer's, or
    a serial number below the stored one, it is a new host; the statistics remain with the old one. An equal serial
    number means that the request is repeated because its reply was lost.
    """
    case = _case(request, view, settings, now)
    because = _because(case, request, view)
    if case is HostCase.KNOWN or case is HostCase.STATE_LOST:
        assert view.host is not None
        host = sanity.described(view.host, request, now=now)
        if case is HostCase.KNOWN:
            return Admission(volunteer, host, case, because)
        has_none = not request.results and not request.other_results
        return Admission(volunteer, replace(host, rpc_seqno=0), case, because, detach=has_none)
    blank = Host(NO_HOST, VolunteerId(volunteer.volunteer_id), created_at=now)
    return Admission(volunteer, replace(sanity.described(blank, request, now=now), rpc_seqno=0), case, because)


def earlier_key(key: RequestKey, admission: Admission) -> RequestKey | None:
    """Return the key of the newest host with the same CPID, read before a record is created; None if already read.

    Without a CPID, a computer cannot be distinguished from others, so each lost first reply leaves an unused record.
    """
    if admission.case in (HostCase.NOT_THEIRS, HostCase.CLONE) and key.host_cpid:
        return replace(key, host_id=NO_HOST)
    return None


def admit_again(request: SchedulerRequest, admission: Admission, earlier: Host, *, now: Instant) -> Admission:
    """Return the admission with the record `earlier` if a request whose reply was lost created it for this client.

    Such a record has the same CPID and computer name, is at most an hour old and has never been used.
    """
    host = replace(sanity.described(earlier, request, now=now), rpc_seqno=0)
    is_young = now - earlier.created_at <= REPEATED_WITHIN_S
    is_other = earlier.host_id != request.host_id and earlier.domain_name == host.domain_name
    if not (is_young and is_other and earlier.rpc_seqno == 0):
        return admission
    return replace(admission, host=host, again=True)


def _case(request: SchedulerRequest, view: RequestView, settings: SchedulerSettings, now: Instant) -> HostCase:
    if _named_host_id(request) == NO_HOST:
        has_cpid = bool(sanity.text(request.host.host_cpid))
        return HostCase.STATE_LOST if view.host is not None and has_cpid else HostCase.FIRST_CONTACT
    if view.host is None:
        return HostCase.NOT_THEIRS
    settled = now - view.host.created_at >= settings.clone_grace_s
    if settled and sanity.seqno(request) < view.host.rpc_seqno:
        return HostCase.CLONE
    return HostCase.KNOWN


def _because(case: HostCase, request: SchedulerRequest, view: RequestView) -> str:
    match case:
        case HostCase.KNOWN:
            return f"host {request.host_id}"
        case HostCase.FIRST_CONTACT:
            return "first contact"
        case HostCase.STATE_LOST:
            return f"no host id; CPID {request.host.host_cpid[:64]} is host {view.host.host_id if view.host else 0}"
        case HostCase.NOT_THEIRS:
            return f"host {request.host_id} is unknown or belongs to another volunteer"
        case HostCase.CLONE:
            stored = view.host.rpc_seqno if view.host else 0
            return f"host {request.host_id} sent request number {request.rpc_seqno} after request number {stored}"


@quick_dataclass(frozen=True, slots=True)
class Contact:
    """One request, with its database key, its arrival time and the catalogue used to answer it."""

    request: SchedulerRequest
    key: RequestKey
    now: Instant
    catalogue: Catalogue
    started_s: Seconds = Seconds(0.0)  # monotonic


def context_of(
    contact: Contact, admission: Admission, view: RequestView, wants: tuple[WorkRequest, ...], review: HeldReview
) -> SchedulingContext:
    """Return the scheduling context for the decision.

    A new host has no statistics; resent jobs reduce the demand. Shared quotas apply as of the read; they are charged
    and checked again when jobs are chosen.
    """
    request, now, catalogue = contact.request, contact.now, contact.catalogue
    host, resent = admission.host, review.resend
    context = SchedulingContext(
        volunteer=_limited(admission.volunteer, host, catalogue),
        host=host,
        now=now,
        catalogue=catalogue,
        wants=less_resent(wants, resent, catalogue) if resent else wants,
        seed=zlib.crc32(f"{host.host_id} {request.rpc_seqno} {now!r}".encode()),
        havs=view.havs if admission.same_record else {},
        held=review.kept,
        resent=resent,
        in_progress=_elsewhere(request.in_progress),
        sticky_files=frozenset(request.sticky_files),
        alone_s=_alone_s(request, view.host if admission.same_record else None, now),
        network=view.network,
    )
    return within_quotas(context, view.quotas)


def _alone_s(request: SchedulerRequest, known: Host | None, now: Instant) -> Seconds:
    """Return how long the host's work should last without another request: its minimum buffer, or the time since its
    last request if that is longer.

    A stock client requests work when its queue is shorter than the buffer (docs/protocol.md), which may also be after
    days offline.
    """
    away_s = 0.0 if known is None else now - known.last_rpc_at
    return sanity.delay_s(max(request.work_buf_min_s, away_s))


def refuse_all(request: SchedulerRequest, settings: Settings, *, paused: str | None, now: Instant) -> Refusal | None:
    """Return why the request gets no work at all; None if it may get work.

    `paused` is the reason why this node sends no work. It is checked before the client's clock, because a node is also
    paused if its own clock is wrong.
    """
    if request.dont_send_work:
        return Refusal(RefusalCode.NO_NEW_TASKS, "the client is set to 'no new tasks'")
    if settings.project.down:
        return Refusal(
            RefusalCode.PROJECT_DOWN, "the project is not sending work at the moment; results are still accepted"
        )
    if paused is not None:
        return Refusal(RefusalCode.PROJECT_DOWN, paused)
    if ANONYMOUS in request.platforms:
        detail = "this client runs its own programs (app_info.xml); the project has no jobs for them"
        return Refusal(RefusalCode.ANONYMOUS_PLATFORM, detail)
    return _clock_skew(request, settings.scheduler.max_clock_skew_s, now)


def banned(host: Host, catalogue: Catalogue) -> Refusal | None:
    """Return why a host gets no work if operators banned it or its volunteer; None if they did not."""
    found = limit_of(catalogue.restrictions, host)
    if found is None or found.max_jobs:
        return None
    whose = "volunteer's computers get" if found.kind is Restricted.VOLUNTEER else "computer gets"
    return Refusal(RefusalCode.BANNED, "this {0} no work: {1}", (whose, found.why))


def _limited(volunteer: Volunteer, host: Host, catalogue: Catalogue) -> Volunteer:
    """Return the volunteer with the operators' limit of jobs in progress if it is below the volunteer's own."""
    found = limit_of(catalogue.restrictions, host)
    if found is None or 0 < volunteer.max_jobs <= found.max_jobs:
        return volunteer
    return replace(volunteer, max_jobs=found.max_jobs)


def _clock_skew(request: SchedulerRequest, most_s: Seconds, now: Instant) -> Refusal | None:
    """Refuse a client whose clock is wrong, because it would discard jobs as overdue by its own clock.

    The transfer time of a request makes the client's clock appear to be behind: by minutes, which the lower bound of
    the limit allows. Clients that do not send their time are not checked.
    """
    skew_s = sanity.clock_skew_s(request.client_now, now)
    if abs(skew_s) <= most_s:
        return None
    side = "ahead of" if skew_s > 0 else "behind"
    sentence = (
        "this computer's clock is {0:length} "
        + side
        + " the project's; at most {1:length} is allowed: correct the clock to get work again"
    )
    return Refusal(RefusalCode.CLOCK_SKEW, sentence, (abs(skew_s), most_s))


def asks_for_work(request: SchedulerRequest) -> bool:
    """Return whether the client requests work for any of its processors."""
    wishes = (request.cpu_req_s, *(coproc.req_s for coproc in request.coprocs))
    return not request.dont_send_work and any(req_s > 0 for req_s in wishes)


def unusable_refusal(request: SchedulerRequest, wants: tuple[WorkRequest, ...]) -> Refusal | None:
    """Return why a client that requests work has no usable processor for it; None if it has one or requests nothing."""
    if wants or not asks_for_work(request):
        return None
    kinds = ", ".join(sorted({sanity.text(one.type, 64) or "?" for one in request.coprocs if one.req_s > 0})) or CPU
    return Refusal(RefusalCode.PLAN_CLASS, f"{kinds}: the client has no usable processor of this type")


def wants_of(request: SchedulerRequest, host: Host) -> tuple[WorkRequest, ...]:
    """Return the work requests, GPU types first and the CPU last; processor types without a request are omitted."""
    if request.dont_send_work:
        return ()
    wants = [
        WorkRequest(
            ProcessorType(coproc.type),
            coproc.count,
            sanity.wanted_s(coproc.req_s, coproc.count),
            sanity.clamped(coproc.req_instances, 0.0, coproc.count),
            sanity.delay_s(coproc.estimated_delay_s),
        )
        for coproc in sanity.usable_coprocs(request.coprocs)
    ]
    wants.append(
        WorkRequest(
            CPU,
            host.ncpus,
            sanity.wanted_s(request.cpu_req_s, host.ncpus),
            sanity.clamped(request.cpu_req_instances, 0.0, host.ncpus),
            sanity.delay_s(request.estimated_delay_s),
        )
    )
    return tuple([want for want in wants if want.req_s > 0])


def less_resent(
    wants: tuple[WorkRequest, ...], resent: Iterable[InstanceInProgress], catalogue: Catalogue
) -> tuple[WorkRequest, ...]:
    """Return the work requests left after lost jobs are resent: req_s minus R times the instances of each job."""
    left = {want.processor_type: want for want in wants}
    for held in resent:
        plan = plan_of(catalogue.versions, held.app_version_id, held.ncpus)
        instances = plan.ncpus if plan.gpu_type is None else plan.gpu_count
        want = left.get(plan.processor_type)
        if want is not None:
            req_s = Seconds(max(0.0, want.req_s - held.est_runtime_s * instances))
            idle = max(0.0, want.req_instances - instances)
            left[plan.processor_type] = replace(want, req_s=req_s, req_instances=idle)
    return tuple(want for want in left.values() if want.req_s > 0)


def kinds_of(context: SchedulingContext) -> tuple[tuple[AppId, ProcessorType], ...]:
    """Return the kinds of work the host could run: the apps with a version, for each requested processor type."""
    catalogue, volunteer = context.catalogue, context.volunteer
    return tuple(
        (app_id, want.processor_type)
        for want in context.wants
        for app_id in sorted(catalogue.current)
        if (not volunteer.apps or app_id in volunteer.apps)
        and any(
            version.platform in context.host.platforms and version.processor_type == want.processor_type
            for version in catalogue.current[app_id]
        )
    )


def _elsewhere(queue: tuple[InProgress, ...] | None) -> tuple[ClientTask, ...] | None:
    if queue is None:
        return None
    return tuple(
        [
            ClientTask(
                job.name,
                job.report_deadline,
                sanity.delay_s(job.remaining_s),
                sanity.clamped(job.ncpus, 0.0, sanity.MOST_CPUS),
                ProcessorType(job.gpu_type) if job.gpu_type else None,
                sanity.clamped(job.gpu_count, 0.0, sanity.MOST_GPUS),
            )
            for job in queue
        ]
    )
