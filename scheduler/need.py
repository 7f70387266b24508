"""How much work does a host still want of one processor type, and how much may it have? Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from domain.apps import CPU, ProcessorType
from domain.hosts import HostAppVersion
from domain.jobs import InstanceInProgress
from domain.quick import quick_dataclass
from domain.refusals import Refusal, RefusalCode
from domain.units import AppVersionId, Seconds
from scheduler.asking import Asking, Want

BELIEVED_AT_FIRST = 64  # processors of one type


@quick_dataclass(frozen=True, slots=True)
class Need:
    """What is still wanted: instance-seconds, idle instances, and jobs the limits still allow.

    `had` and `had_urgent` count the jobs of this type on the host, those of this reply included; urgent are
    those behind a gate.
    """

    seconds: float
    instances: float
    jobs: int
    had: int = 0
    had_urgent: int = 0

    @property
    def open(self) -> bool:
        """Whether another job is wanted and allowed.

        >>> Need(1.0, 0.0, 8).open, Need(0.0, 2.0, 8).open, Need(0.0, 0.0, 8).open, Need(9.0, 2.0, 0).open
        (True, True, False, False)
        """
        return self.jobs > 0 and (self.seconds > 0.0 or self.instances > 0.0)

    def after(self, usage: float, runtime_s: Seconds, *, urgent: bool) -> Need:
        """What is wanted once a job on `usage` instances was sent.

        >>> Need(1.0, 2.0, 8).after(1.0, Seconds(3600.0), urgent=False)
        Need(seconds=-3599.0, instances=1.0, jobs=7, had=1, had_urgent=0)
        """
        return Need(
            self.seconds - usage * runtime_s,
            self.instances - usage,
            self.jobs - 1,
            self.had + 1,
            self.had_urgent + urgent,
        )

    def allowing(self, jobs: int) -> Need:
        """The same with so many jobs allowed."""
        return Need(self.seconds, self.instances, jobs, self.had, self.had_urgent)

    def of_idle(self) -> Need:
        """What whole idle instances want now, and nothing for later.

        >>> Need(9000.0, 2.5, 8).of_idle()
        Need(seconds=0.0, instances=2.0, jobs=8, had=0, had_urgent=0)
        """
        return Need(0.0, float(int(max(0.0, self.instances))), self.jobs, self.had, self.had_urgent)

    def has_room_for_urgent(self, usage: float, runtime_s: Seconds, fraction: float, drawn: float) -> bool:
        """Whether one more urgent job keeps within its share of what the host will have (POLICY D11).

        urgent + 1 <= fraction * (jobs it has + jobs still to be sent), the latter as many jobs of this length as
        are wanted. Where that allows less than one, the host has an urgent job in that share of its requests: when
        `drawn`, from 0 to below 1, is below `fraction`.

        >>> need = Need(seconds=4 * 3600.0, instances=0.0, jobs=8)
        >>> one = need.after(1.0, Seconds(3600.0), urgent=True)
        >>> two = one.after(1.0, Seconds(3600.0), urgent=True)
        >>> [n.has_room_for_urgent(1.0, Seconds(3600.0), 0.5, drawn=0.9) for n in (need, one, two)]
        [True, True, False]
        >>> [Need(1.0, 0.0, 8).has_room_for_urgent(1.0, Seconds(3600.0), 0.5, drawn) for drawn in (0.2, 0.7)]
        [True, False]
        """
        by_seconds = self.seconds / (usage * runtime_s) if usage * runtime_s > 0 else self.seconds
        to_send = min(float(self.jobs), max(1.0, by_seconds, self.instances / usage))
        allowed = math.floor(fraction * (self.had + math.ceil(to_send)) + 1e-9)
        if not allowed and not self.had_urgent:
            return drawn < fraction
        return self.had_urgent + 1 <= allowed


def need_of(want: Want, asking: Asking, *, sent: int) -> Need | Refusal:
    """What may be sent for one processor type, or which limit is already reached.

    Limits: jobs per request and processor, jobs in progress per processor, the volunteer's own wish for the whole
    host, and what the quotas that it shares allow. `sent` jobs of other types are in this reply.
    """
    settings = asking.catalogue.settings.scheduler
    kind, count = want.processor_type, believed(max(1, want.count), asking.havs)
    held = [one for one in asking.held if _type_of(one, asking) == kind] if asking.held else []
    per_processor = settings.in_progress_per_cpu if kind == CPU else settings.in_progress_per_gpu
    most = per_processor * count
    if len(held) >= most:
        return _limit_reached(f"{kind}: {len(held)} jobs in progress, the limit is {most}")
    jobs = min(settings.jobs_per_request * count, most - len(held))
    wish, total = asking.volunteer.max_jobs, len(asking.held) + sent
    if wish and total >= wish:
        return _limit_reached(f"{kind}: {total} jobs in progress, the volunteer wants at most {wish}")
    if wish:
        jobs = min(jobs, wish - total)
    if asking.most_jobs is not None and asking.quota is not None:
        if sent >= asking.most_jobs:
            return asking.quota
        jobs = min(jobs, asking.most_jobs - sent)
    return Need(want.req_s, want.req_instances, jobs, len(held), _urgent(held))


def believed(claimed: int, havs: Mapping[AppVersionId, HostAppVersion]) -> int:
    """How many processors a host's limits go by: those it claims, but no more than it has had results validated.

    BELIEVED_AT_FIRST are believed of anybody. Nobody can check what a client says of itself: without this one that
    claims 4096 CPUs would get 32,768 jobs with its first request. One that really has them has had 512 results
    validated after its first 512 jobs, and is believed 4096 after the next round.

    >>> believed(8, {}), believed(4096, {}), believed(4096, {1: HostAppVersion(1, 1, n_valid=512)})
    (8, 64, 512)
    """
    if claimed <= BELIEVED_AT_FIRST:
        return claimed
    return min(claimed, max(BELIEVED_AT_FIRST, sum(hav.n_valid for hav in havs.values())))


def _limit_reached(detail: str) -> Refusal:
    return Refusal(RefusalCode.IN_PROGRESS_LIMIT, detail)


def _type_of(held: InstanceInProgress, asking: Asking) -> ProcessorType:
    version = asking.catalogue.versions.get(held.app_version_id)
    return version.processor_type if version is not None else CPU


def _urgent(held: Iterable[InstanceInProgress]) -> int:
    return sum(1 for one in held if one.gated or one.tight)
