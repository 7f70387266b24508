"""What would a host ask for if it called now? A request made up from what is known of it. Pure.

Nobody knows what a client will want: it is supposed to have nothing else to do, and to ask for one job for each
processor that no job of this project occupies; for at least one job of each type. How much its owner stores is not
kept: nothing. The rest is as it last said.
"""

from __future__ import annotations

from domain.apps import CPU, ProcessorType
from domain.catalogue import Catalogue
from domain.dispatch import RequestView
from domain.hosts import Host
from domain.jobs import InstanceInProgress
from domain.refusals import Refusal
from domain.units import Instant, Seconds
from scheduler.admission import Admission, HostCase, context_of, refuse_all, wants_of
from scheduler.busy import usage_of
from scheduler.context import SchedulingContext
from wire.messages import CoprocRequest, SchedulerRequest

AT_LEAST_ONE_JOB_S = Seconds(1e-9)  # as little as can be asked for: a second would be two jobs of half a second


def supposed_request(host: Host, held: tuple[InstanceInProgress, ...], catalogue: Catalogue) -> SchedulerRequest:
    """The request such a host would send, as far as a decision depends on it."""
    coprocs = tuple(
        CoprocRequest(
            gpu.type,
            gpu.count,
            gpu.peak_flop_per_s,
            gpu.ram_bytes,
            gpu.driver_version,
            req_s=AT_LEAST_ONE_JOB_S,
            req_instances=idle_instances(gpu.type, gpu.count, held, catalogue),
        )
        for gpu in host.coprocessors
    )
    return SchedulerRequest(
        authenticator="",
        host_id=host.host_id,
        rpc_seqno=host.rpc_seqno,
        cpu_req_s=AT_LEAST_ONE_JOB_S,
        cpu_req_instances=idle_instances(CPU, host.ncpus, held, catalogue),
        platforms=host.platforms,
        coprocs=coprocs,
        client_now=Instant(host.last_rpc_at + host.clock_skew_s),
    )


def idle_instances(
    kind: ProcessorType, count: int, held: tuple[InstanceInProgress, ...], catalogue: Catalogue
) -> float:
    """Processors of a type that no job in progress occupies."""
    plans = [
        catalogue.versions[one.app_version_id].plan_class for one in held if one.app_version_id in catalogue.versions
    ]
    used = sum(usage_of(plan) for plan in plans if plan.processor_type == kind)
    return max(0.0, count - used)


def supposed_asking(view: RequestView, catalogue: Catalogue, *, now: Instant) -> SchedulingContext:
    """What the decision about such a request depends on. The view must have a volunteer and a host."""
    assert view.volunteer is not None and view.host is not None
    host = view.host
    request = supposed_request(host, view.held, catalogue)
    admission = Admission(view.volunteer, host, HostCase.KNOWN, f"host {host.host_id}")
    return context_of(
        request,
        admission,
        view,
        wants=wants_of(request, host),
        kept=view.held,
        resent=(),
        catalogue=catalogue,
        now=now,
    )


def refusal_of_all(view: RequestView, catalogue: Catalogue) -> Refusal | None:
    """Why such a request would be given nothing, whatever there is; None when it may have some."""
    assert view.host is not None
    request = supposed_request(view.host, view.held, catalogue)
    return refuse_all(request, catalogue.settings, paused=None, now=view.host.last_rpc_at)
