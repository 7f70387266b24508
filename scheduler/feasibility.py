"""Checks whether a host may get a job. The checks are ordered by cost; the first refusal decides. Pure.

App checks run once per app and processor type, class checks once per class and state of the disk, job checks for each
job. A refusal states both numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

from domain.apps import CPU, App
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.host_classes import NO_STANDINGS, ClassesByApp, ClassStanding, Standings, class_by_names
from domain.hosts import Host
from domain.jobs import JobClass, Ready, draw
from domain.queue_hosts import queue_hosts
from domain.refusals import Need, Refusal, RefusalCode
from domain.restrictions import name_of
from domain.units import Flop, InstanceId, JobId, Seconds
from priority.node_groups import HostClass, drawn_class, shares
from scheduler.context import SchedulingContext, WorkRequest
from scheduler.ports import SlotGroup, SlotSource

MOST_NAMED = 5  # maximum number of pauses in a message

AppCheck = Callable[[App, SchedulingContext], Refusal | None]
ClassCheck = Callable[[JobClass, SchedulingContext, float], Refusal | None]  # the float: free disk space in bytes


# ------------------------------------------------------------------ processor type


def device_refusal(want: WorkRequest, context: SchedulingContext) -> Refusal | None:
    """Return why these processors get no work at all; None if they may get work."""
    kind = want.processor_type
    if kind == CPU:
        return (
            Refusal(RefusalCode.NO_CPU, "cpu: the volunteer does not allow CPU work")
            if context.volunteer.no_cpu
            else None
        )
    if context.volunteer.no_gpu:
        return Refusal(RefusalCode.NO_GPU, f"{kind}: the volunteer does not allow GPU work")
    if want.count < 1:
        return Refusal(RefusalCode.PLAN_CLASS, f"{kind}: needs at least 1 device, the client has {want.count}")
    return None


# ------------------------------------------------------------------ app


def is_offered(app: App, _context: SchedulingContext) -> Refusal | None:
    """Refuse deprecated apps."""
    if not app.deprecated:
        return None
    return Refusal(RefusalCode.NO_APP_VERSION, f"app {app.name} is deprecated")


def is_selected(app: App, context: SchedulingContext) -> Refusal | None:
    """Refuse apps that the volunteer did not select; an empty selection allows all."""
    chosen = context.volunteer.apps
    if not chosen or app.app_id in chosen:
        return None
    apps = "1 app" if len(chosen) == 1 else f"{len(chosen)} apps"
    return Refusal(RefusalCode.APP_NOT_SELECTED, f"app {app.name} is not among the {apps} the volunteer selected")


def is_beta_wanted(app: App, context: SchedulingContext) -> Refusal | None:
    """Refuse beta apps unless the volunteer opted in."""
    if not app.beta or context.volunteer.beta:
        return None
    return Refusal(RefusalCode.BETA, f"app {app.name} is in beta; the volunteer did not opt in to beta apps")


# ------------------------------------------------------------------ queue


def queue_refusal(batch: Batch, context: SchedulingContext) -> Refusal | None:
    """Return why the batch's queue has no work for this host: the first unmet condition of ordering.queue_hosts."""
    bound = context.catalogue.settings.ordering.queue_hosts
    for condition in queue_hosts(bound).get(batch.queue, ()) if bound else ():
        if (unmet := condition.unmet(context.host)) is not None:
            sentence = "queue {0} needs hosts with {1}, this host has {2}"
            return Refusal(RefusalCode.QUEUE, sentence, (batch.queue, *unmet, condition.name))
    return None


# ------------------------------------------------------------------ job class


def fits_memory(job_class: JobClass, context: SchedulingContext, _disk_bytes: float) -> Refusal | None:
    """Compare the job's memory bound with the RAM that the client may use."""
    if job_class.memory_bytes <= context.host.ram_bytes:
        return None
    return Refusal(
        RefusalCode.MEMORY,
        "{0} of RAM, host offers {1}",
        (job_class.memory_bytes, context.host.ram_bytes),
        Need.BYTES,
    )


def fits_cpus(job_class: JobClass, context: SchedulingContext, _disk_bytes: float) -> Refusal | None:
    """Compare the CPUs of one instance with the host's CPUs and with the volunteer's limit per job."""
    ncpus, lent = job_class.ncpus, context.volunteer.max_cpus
    if ncpus > context.host.ncpus:
        return Refusal(RefusalCode.CPUS, "{0} CPUs, host has {1}", (ncpus, context.host.ncpus), Need.NUMBER)
    if lent and ncpus > lent:
        return Refusal(RefusalCode.CPUS, "{0} CPUs, the volunteer allows {1} per job", (ncpus, lent), Need.NUMBER)
    return None


def fits_disk(job_class: JobClass, _context: SchedulingContext, disk_bytes: float) -> Refusal | None:
    """Compare the job's disk bound with the disk space left after the jobs in this reply."""
    if job_class.disk_bytes <= disk_bytes:
        return None
    return Refusal(
        RefusalCode.DISK,
        "{0} of disk space, the project may use {1} more on this host",
        (job_class.disk_bytes, disk_bytes),
        Need.BYTES,
    )


def fits_hr(job_class: JobClass, context: SchedulingContext, _disk_bytes: float) -> Refusal | None:
    """Refuse the host if the job requires homogeneous redundancy and the host's class is unknown."""
    if job_class.hr_type == 0 or hr_class_of(context.host, job_class.hr_type):
        return None
    return Refusal(
        RefusalCode.HR_CLASS,
        "job requires homogeneous redundancy, but the host's OS or CPU vendor is unknown "
        f"(type {job_class.hr_type}, OS {context.host.os_name!r}, CPU {context.host.cpu_vendor!r})",
    )


# All reasons for "no work", cheapest first; the first refusal decides.
APP_CHECKS: tuple[AppCheck, ...] = (is_offered, is_selected, is_beta_wanted)  # next: app version
CLASS_CHECKS: tuple[ClassCheck, ...] = (fits_memory, fits_cpus, fits_disk, fits_hr)  # next: due date and gate

# ------------------------------------------------------------------ single job


def hr_refusal(slot: Ready, host_hr_class: int) -> Refusal | None:
    """Refuse hosts outside the class that the job's first instance determined."""
    if slot.hr_class in (0, host_hr_class):
        return None
    return Refusal(
        RefusalCode.HR_CLASS, "job is bound to HR class {0}, this host is in class {1}", (slot.hr_class, host_hr_class)
    )


def hr_class_of(host: Host, hr_type: int) -> int:
    """Return the host's class for homogeneous redundancy, 10 * OS + vendor; 0 if unknown.

    Type 2 compares only the OS.

    >>> linux = Host(1, 1, os_name="Linux Debian", cpu_vendor="GenuineIntel")
    >>> hr_class_of(linux, 1), hr_class_of(linux, 2), hr_class_of(linux, 0), hr_class_of(Host(1, 1), 1)
    (21, 20, 0, 0)
    """
    return class_by_names(host.os_name, host.cpu_vendor, hr_type)


def uncommitted_refusal(slot: Ready, group: SlotGroup, classes: ClassesByApp, host_class: int) -> Refusal | None:
    """Return why a job without an HR class may not go to this class of hosts; None if it may or no class was measured.

    The class is drawn once per job, not per request.
    """
    job_class, batch = group.job_class, group.batch
    of_type = classes.of.get((batch.app_id, job_class.hr_type), NO_STANDINGS)
    found = shares_of(of_type, job_class.fpops_est_flop, batch.counts.unsent, job_class.quorum)
    chosen = drawn_class(found, draw(InstanceId(slot.job_id)))
    if chosen is None or int(chosen) == host_class:
        return None
    terms = (int(chosen), host_class, 100.0 * found.get(str(host_class), 0.0))
    return Refusal(RefusalCode.HR_CLASS, CHOSEN, terms)


CHOSEN = "job is assigned to HR class {0}, this host is in class {1}, which gets {2:.0f} % of the batch's jobs"


@lru_cache(maxsize=256)
def shares_of(classes: Standings, job_flop: Flop, jobs: int, replicas: int) -> Mapping[str, float]:
    """Return each class's share of `jobs` jobs. A class with fewer hosts than a job has replicas gets no share."""
    alike = [_alike(one, job_flop) for one in classes]
    return shares(alike, Flop(jobs * job_flop), replicas=replicas)


def _alike(one: ClassStanding, job_flop: Flop) -> HostClass:
    """Return a host class whose turnaround is a host's request interval plus R on one of its cores."""
    per_core = one.flop_per_s / one.cores if one.cores > 0.0 else 0.0
    runtime_s = job_flop / per_core if per_core > 0.0 else 0.0
    return HostClass(str(one.hr_class), one.queued_flop, one.flop_per_s, Seconds(one.interval_s + runtime_s), one.hosts)


def after_retries(slots: Sequence[Ready]) -> int:
    """Return the index of the first slot without retries; retries come first.

    >>> from domain.jobs import Ready
    >>> after_retries([Ready(1, 1, 1, 1, retries=2), Ready(2, 2, 1, 1, retries=1), Ready(3, 3, 1, 1)])
    2
    """
    if slots[-1].retries > 0:
        return len(slots)
    return bisect_left(slots, 0, key=lambda slot: -slot.retries)


def job_refusal(
    slot: Ready, group: SlotGroup, context: SchedulingContext, array: SlotSource, *, in_reply: Collection[JobId]
) -> Refusal | None:
    """Check a single job: limits per host and volunteer, and HR class. `in_reply` are jobs already in this reply."""
    if slot.job_id in in_reply:
        return Refusal(RefusalCode.SAME_HOST, "job {0} has another instance in this reply", (slot.job_id,))
    if slot.hr_class:
        refusal = hr_refusal(slot, hr_class_of(context.host, group.job_class.hr_type))
        if refusal is not None:
            return refusal
    elif group.job_class.hr_type:
        host_class = hr_class_of(context.host, group.job_class.hr_type)
        refusal = uncommitted_refusal(slot, group, context.catalogue.host_classes, host_class)
        if refusal is not None:
            return refusal
    known = array.may_have(slot, context.host.host_id, context.volunteer.volunteer_id)
    return None if known is None else _spread_refusal(known, slot, group, context)


def _spread_refusal(known: RefusalCode, slot: Ready, group: SlotGroup, context: SchedulingContext) -> Refusal | None:
    """Return the refusal if this host (SAME_HOST) or its volunteer (SAME_VOLUNTEER) has already had an instance."""
    spread = context.catalogue.apps[group.batch.app_id].spread(group.job_class.quorum, slot.copies)
    if spread.per_volunteer:
        return Refusal(
            RefusalCode.SAME_VOLUNTEER,
            "job {0} goes to a volunteer at most once, and this volunteer has had an instance, even if it was aborted",
            (slot.job_id,),
        )
    if known is not RefusalCode.SAME_HOST:
        return None
    if any(held.job_id == slot.job_id for held in context.held):
        return Refusal(RefusalCode.SAME_HOST, "this host has an instance of job {0} in progress", (slot.job_id,))
    if spread.per_host:
        return Refusal(
            RefusalCode.SAME_HOST,
            "job {0} goes to a host at most once, and this host has had an instance, even if it was aborted",
            (slot.job_id,),
        )
    return None


def none_ready(catalogue: Catalogue) -> Refusal:
    """Return why there is nothing to examine: no work waits, or operators have paused some work."""
    found = [one for one in catalogue.restrictions.values() if one.kind.is_work]
    paused = [f"{one.kind} {name_of(one, catalogue.apps)}" for one in found]
    if not paused:
        return Refusal(RefusalCode.NO_SLOTS, "no job is ready to be sent")
    named = ", ".join(sorted(paused)[:MOST_NAMED])
    return Refusal(RefusalCode.PAUSED, "no job is ready to be sent; paused: {0}", (named,))
