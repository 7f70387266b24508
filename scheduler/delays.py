"""Decides how long a client stays away: the request delay of a reply. Pure. PROTOCOL 5.2 and 9.

A stock client makes no scheduler request of its own before the delay is over, neither to report nor to ask for work.
It looks every 5 s whether there is a reason to call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from domain.apps import ANONYMOUS, CPU, AppVersion
from domain.catalogue import Catalogue
from domain.hosts import Host
from domain.jobs import InstanceInProgress
from domain.refusals import RefusalCode
from domain.settings import SchedulerSettings
from domain.units import AppVersionId, Instant, Seconds
from scheduler.asking import Want
from scheduler.busy import usage_of
from scheduler.elements import JobToSend

LEAST_FRACTION = 1.0 / 6.0  # of request_delay_s, for a host whose work is done by then: 10 s by default

# What only the computer's owner or the project can change; such a client need not call again soon.
WRONG_PLATFORM = frozenset({RefusalCode.ANONYMOUS_PLATFORM, RefusalCode.PLATFORM, RefusalCode.NO_APP_VERSION})


def request_delay_s(
    reasons: Collection[RefusalCode],
    *,
    sent: bool,
    wanted: bool,
    work_s: Seconds,
    unrunnable: bool,
    holds_work: bool,
    settings: SchedulerSettings,
) -> Seconds:
    """Return the seconds until the client may call again.

    If jobs were sent, or other hosts were given them first: when the host has done its work (`work_s`), at least a
    sixth of `request_delay_s` and at most `request_delay_s`. A host with little work so comes back soon, and never
    calls more often than jobs are sent to it. If the client wanted work and there was none: `no_work_delay_s`, or
    `refused_delay_s` if the host can run no version of the project (`unrunnable`) and has no work to report.

    >>> def delay_s(work_s):
    ...     return request_delay_s((), sent=True, wanted=True, work_s=work_s, unrunnable=False, holds_work=True,
    ...                            settings=SchedulerSettings())
    >>> delay_s(2.0), delay_s(45.0), delay_s(3600.0)
    (10.0, 45.0, 60.0)
    """
    longest_s = settings.request_delay_s
    if not wanted:
        return longest_s
    if sent or RefusalCode.LOST_RACE in reasons:
        return Seconds(min(longest_s, max(work_s, LEAST_FRACTION * longest_s)))
    if unrunnable and not holds_work:
        return settings.refused_delay_s
    return settings.no_work_delay_s


def work_s(
    jobs: Iterable[JobToSend],
    held: Iterable[InstanceInProgress],
    wants: Sequence[Want],
    versions: Mapping[AppVersionId, AppVersion],
) -> Seconds:
    """Return how long the processors that were given jobs, or wanted some, have work for, the least of all types.

    By the client's own estimate of new jobs, fpops_est over the speed it is told, shared by all processors of the
    type; jobs in progress count in full.
    """
    sent = [(job.version, job.job_class.fpops_est_flop / job.flop_per_s) for job in jobs]
    kinds = {version.processor_type for version, _ in sent}
    counts = {want.processor_type: max(1, want.count) for want in wants}
    left = {kind: 0.0 for kind in counts if kind in kinds or not kinds}
    known = [(versions[one.app_version_id], one.est_runtime_s) for one in held if one.app_version_id in versions]
    for version, runtime_s in (*sent, *known):
        kind = version.processor_type
        if kind in left:
            left[kind] += usage_of(version.plan_class) * runtime_s / counts[kind]
    return Seconds(min(left.values(), default=0.0))


def is_unrunnable(reasons: Collection[RefusalCode], host: Host, catalogue: Catalogue, *, now: Instant) -> bool:
    """Whether no app of the project has a version for any platform and processor of the host.

    Not within `refused_delay_s` after a version was added: versions for other platforms may follow. A client with
    programs of its own (anonymous platform) runs none of the project's.
    """
    if not reasons or not WRONG_PLATFORM.issuperset(reasons):
        return False
    if ANONYMOUS in host.platforms:
        return True
    kinds = {CPU, *(gpu.type for gpu in host.coprocessors)}
    current = [version for versions in catalogue.current.values() for version in versions]
    if any(version.platform in host.platforms and version.processor_type in kinds for version in current):
        return False
    newest_at = max((version.created_at for version in catalogue.versions.values()), default=now)
    return now - newest_at > catalogue.settings.scheduler.refused_delay_s
