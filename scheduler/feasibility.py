"""May this host have this work? Small checks, cheapest first; the first refusal ends the row. Pure.

Checks of an app are asked once per app and processor type, checks of a class once per class and state of
the disk, checks of a job for every job. A refusal names both numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.apps import CPU, App, ProcessorType
from domain.host_classes import class_by_names
from domain.hosts import Host
from domain.jobs import JobClass, Ready
from domain.refusals import Refusal, RefusalCode
from scheduler.asking import Asking, Want

AppCheck = Callable[[App, ProcessorType, Asking], Refusal | None]
ClassCheck = Callable[[JobClass, Asking, float], Refusal | None]  # the last: disk bytes still free


# ------------------------------------------------------------------ of a processor type


def device_refusal(want: Want, asking: Asking) -> Refusal | None:
    """Why no work is given for these processors at all; None when some may be."""
    kind = want.processor_type
    if kind == CPU:
        return Refusal(RefusalCode.NO_CPU, "cpu: the volunteer wants no CPU work") if asking.volunteer.no_cpu else None
    if asking.volunteer.no_gpu:
        return Refusal(RefusalCode.NO_GPU, f"{kind}: the volunteer wants no GPU work")
    if want.count < 1:
        return Refusal(RefusalCode.PLAN_CLASS, f"{kind}: needs at least 1 device, the client has {want.count}")
    if not want.usable:
        return Refusal(RefusalCode.PLAN_CLASS, f"{kind}: the client found no driver for its {want.count} devices")
    return None


# ------------------------------------------------------------------ of an app


def is_offered(app: App, _kind: ProcessorType, _asking: Asking) -> Refusal | None:
    """A deprecated app gets no new work."""
    if not app.deprecated:
        return None
    return Refusal(RefusalCode.NO_APP_VERSION, f"app {app.name} is deprecated")


def is_selected(app: App, _kind: ProcessorType, asking: Asking) -> Refusal | None:
    """The volunteer chose this app, or none in particular."""
    chosen = asking.volunteer.apps
    if not chosen or app.app_id in chosen:
        return None
    apps = "1 app" if len(chosen) == 1 else f"{len(chosen)} apps"
    return Refusal(RefusalCode.APP_NOT_SELECTED, f"app {app.name} is not among the {apps} the volunteer selected")


def is_beta_wanted(app: App, _kind: ProcessorType, asking: Asking) -> Refusal | None:
    """A beta app is only for volunteers who opted in."""
    if not app.beta or asking.volunteer.beta:
        return None
    return Refusal(RefusalCode.BETA, f"app {app.name} is being tested; the volunteer did not opt in")


# ------------------------------------------------------------------ of a class of jobs


def fits_memory(job_class: JobClass, asking: Asking, _disk_bytes: float) -> Refusal | None:
    """The job's memory bound against what the owner lets the client use."""
    if job_class.memory_bytes <= asking.ram_bytes:
        return None
    return Refusal(
        RefusalCode.MEMORY,
        "job needs {0} of RAM, host offers {1}",
        (job_class.memory_bytes, asking.ram_bytes),
        sizes=True,
    )


def fits_cpus(job_class: JobClass, asking: Asking, _disk_bytes: float) -> Refusal | None:
    """The CPUs of one instance against the host's, and against those the volunteer lends one job."""
    ncpus, lent = job_class.ncpus, asking.volunteer.max_cpus
    if ncpus > asking.host.ncpus:
        return Refusal(RefusalCode.CPUS, "job needs {0:g} CPUs, host has {1}", (ncpus, asking.host.ncpus))
    if lent and ncpus > lent:
        return Refusal(RefusalCode.CPUS, "job needs {0:g} CPUs, the volunteer lends one job at most {1}", (ncpus, lent))
    return None


def fits_disk(job_class: JobClass, _asking: Asking, disk_bytes: float) -> Refusal | None:
    """The job's disk bound against what is free after the jobs of this reply."""
    if job_class.disk_bytes <= disk_bytes:
        return None
    return Refusal(
        RefusalCode.DISK,
        "job needs {0} of disk, project may use {1} more",
        (job_class.disk_bytes, disk_bytes),
        sizes=True,
    )


def fits_hr(job_class: JobClass, asking: Asking, _disk_bytes: float) -> Refusal | None:
    """Homogeneous redundancy: the host's class must be known where jobs ask for one."""
    if job_class.hr_type == 0 or hr_class_of(asking.host, job_class.hr_type):
        return None
    return Refusal(
        RefusalCode.HR_CLASS,
        f"job asks for hosts alike (type {job_class.hr_type}), this one's system {asking.host.os_name!r} "
        f"and CPU {asking.host.cpu_vendor!r} are not known",
    )


# The page to show a volunteer who asks "why do I get no work?". Cheapest first; the first refusal counts.
APP_CHECKS: tuple[AppCheck, ...] = (is_offered, is_selected, is_beta_wanted)  # then: a version that runs here
CLASS_CHECKS: tuple[ClassCheck, ...] = (fits_memory, fits_cpus, fits_disk, fits_hr)  # then: due date and gate

# ------------------------------------------------------------------ of one job


def hr_refusal(slot: Ready, host_hr_class: int) -> Refusal | None:
    """A job whose first instance fixed a class goes to hosts of that class only."""
    if slot.hr_class in (0, host_hr_class):
        return None
    return Refusal(
        RefusalCode.HR_CLASS, "job is for hosts of class {0}, this one is {1}", (slot.hr_class, host_hr_class)
    )


def hr_class_of(host: Host, hr_type: int) -> int:
    """The host's class for homogeneous redundancy: 10 * system + vendor; 0 where it cannot be told.

    Type 2 compares the system only.

    >>> linux = Host(1, 1, os_name="Linux Debian", cpu_vendor="GenuineIntel")
    >>> hr_class_of(linux, 1), hr_class_of(linux, 2), hr_class_of(linux, 0), hr_class_of(Host(1, 1), 1)
    (21, 20, 0, 0)
    """
    return class_by_names(host.os_name, host.cpu_vendor, hr_type)
