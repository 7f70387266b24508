"""Reserves for wide jobs: keeps slots of the job array, ends leases, follows homogeneous-redundancy classes.

1 the waiting batches whose jobs may be wide, in order; 2 those of which hosts have taken nothing since the last round
are blocked: slots are kept for the first of them (priority/big_jobs.py); 3 leases that requests made, and why they end.
Hosts are read for classes only while jobs wait whose replicas need hosts alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from domain.apps import CPU
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.host_classes import AlikeHosts, ClassStanding, HostClasses, class_by_names
from domain.ordered_work import Reference
from domain.ordering import Request
from domain.reservations import BigBatch, Kept, LeaseEnd, LeaseStanding
from domain.units import DAY_S, AppId, BatchId, Flop, FlopPerSecond, Instant, Seconds
from jobs.ordering.sizing import gpu_of
from jobs.ports import RedundantWork, ReservedWork
from priority.big_jobs import WaitingBigJob, given_back, kept_slots

Line = tuple[AppId, int]  # an app, and a type of homogeneous redundancy


class ClassLooker:
    """Once per cluster."""

    def __init__(self, work: RedundantWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock

    async def run_once(self) -> HostClasses:
        """Look once, and note what requests go by from then on."""
        catalogue, now = self._catalogue(), self._clock.now()
        lines = await self._work.redundant_lines()
        if not lines and not catalogue.host_classes.of:
            return HostClasses(now)
        active_since = Instant(now - catalogue.settings.ranking.active_s)
        hosts = await self._work.alike_hosts(active_since=active_since) if lines else ()
        found = HostClasses(now, standings_of(lines, hosts, catalogue))
        await self._work.note_classes(found)
        return found


def standings_of(
    lines: Mapping[Line, Mapping[int, Flop]], hosts: Iterable[AlikeHosts], catalogue: Catalogue
) -> tuple[ClassStanding, ...]:
    """Every class of each app and type, of the hosts with a platform the app has a version for. Pure.

    `lines` has the unsent work that is committed to each class. Hosts whose class cannot be told are left out.
    """
    hosts = tuple(hosts)
    found = []
    for (app_id, hr_type), queued in sorted(lines.items()):
        platforms = {one.platform for one in catalogue.current.get(app_id, ()) if one.processor_type == CPU}
        platforms = platforms or {one.platform for one in catalogue.current.get(app_id, ())}
        classes: dict[int, list[AlikeHosts]] = {}
        for one in hosts:
            if platforms.intersection(one.platforms):
                classes.setdefault(class_by_names(one.os_name, one.cpu_vendor, hr_type), []).append(one)
        for hr_class, some in sorted(classes.items()):
            if hr_class:
                found.append(_standing(app_id, hr_type, hr_class, some, queued.get(hr_class, Flop(0.0))))
    return tuple(found)


def _standing(app_id: AppId, hr_type: int, hr_class: int, some: list[AlikeHosts], queued: Flop) -> ClassStanding:
    count = sum(one.hosts for one in some)
    return ClassStanding(
        app_id,
        hr_type,
        hr_class,
        count,
        sum(one.cores for one in some),
        FlopPerSecond(sum(one.flop_per_s for one in some)),
        Seconds(sum(one.interval_s * one.hosts for one in some) / count),
        queued,
    )


LOOKED_AT = 4  # batches per slot that is to be kept, and
MORE_LOOKED_AT = 20  # besides: those that hosts take anyway need no slot
RESTS_S = DAY_S  # a host whose lease came to nothing is given no other for so long


@dataclass(frozen=True, slots=True)
class ReservingReport:
    """One look: slots kept, those among them that were not before, leases that stand, and those that ended.

    `changed`: requests go by something else than at the last look, whoever made it so.
    """

    kept: int = 0
    newly_kept: int = 0
    leases: int = 0
    ended: int = 0
    changed: bool = field(default=False, compare=False)


class Reserver:
    """Once per cluster. A second one at once does no harm: the last look counts."""

    def __init__(self, work: ReservedWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._sent: Mapping[BatchId, int] = {}  # of big batches at the last look
        self._told: object = ((), ())  # what was kept and leased after it
        self._log = structlog.get_logger("jobs.reserving")

    async def run_once(self) -> ReservingReport:
        """Look once. Without `ordering.reservation_slots` nothing is kept, and leases that stand run out."""
        catalogue, now = self._catalogue(), self._clock.now()
        reserved = await self._work.reserved()
        before = reserved.kept
        kept = await self._kept(catalogue, list(before.values()), now)
        standing = await self._work.standing_leases()
        ends = ends_of(standing, slack_s=catalogue.settings.ordering.lease_slack_s, now=now)
        rested_at = Instant(now - RESTS_S)
        rested = any(one.ended_at is not None and one.ended_at < rested_at for one in reserved.leases.values())
        if list(before.values()) != kept or ends or rested:
            await self._work.reserve(kept, ends, forget_before=rested_at, now=now)
        for end in ends:
            self._log.info("lease ended", host_id=end.host_id, batch_id=end.batch_id, why=end.because)
        fresh = [one.batch_id for one in kept if before.get(one.batch_id) != one]
        if fresh:
            self._log.info("slots kept for big jobs", batch_ids=fresh)
        ended = {end.host_id for end in ends}
        told = (tuple(kept), tuple(one.lease for one in standing if one.lease.host_id not in ended))
        changed, self._told = told != self._told, told
        return ReservingReport(len(kept), len(fresh), len(standing) - len(ends), len(ends), changed)

    async def _kept(self, catalogue: Catalogue, before: Sequence[Kept], now: Instant) -> list[Kept]:
        settings = catalogue.settings.ordering
        depth = settings.reservation_slots
        reference = await self._work.reference()
        if not depth or reference is None:
            return []
        gpus = {app_id: gpu for app_id in catalogue.apps if (gpu := gpu_of(catalogue, app_id)) is not None}
        least = least_big(reference, settings.reservation_pe_factor)
        found = await self._work.big_batches(least, sorted(gpus), LOOKED_AT * depth + MORE_LOOKED_AT)
        waiting = [_waiting(one, gpus, is_blocked=self._sent.get(one.batch_id) == one.sent) for one in found]
        self._sent = {one.batch_id: one.sent for one in found}
        return kept_slots(
            waiting,
            before,
            depth=depth,
            reference=reference.host,
            least_pe=settings.reservation_pe_factor,
            longest_s=settings.reservation_age_s,
            now=now,
        )


def least_big(reference: Reference, least_pe: float) -> Request:
    """From how much of each resource on a job has so many processor equivalents on the reference host. Pure.

    PE = cores of the host * the greatest of asked / had, so r >= PE * had / cores; what it has none of is left out.

    >>> least_big(Reference(Instant(0.0), Request(8.0, memory_bytes=16e9)), 4.0)
    Request(cores=4.0, memory_bytes=8000000000.0, disk_bytes=inf, gpus=())
    """
    host = reference.host
    per_core = least_pe / host.cores
    memory, disk = (per_core * had if had > 0.0 else math.inf for had in (host.memory_bytes, host.disk_bytes))
    return Request(least_pe, memory, disk)


def ends_of(standing: Sequence[LeaseStanding], *, slack_s: Seconds, now: Instant) -> list[LeaseEnd]:
    """The leases that are over, and why. Pure."""
    reasons = ((one, given_back(one, slack_s=slack_s, now=now)) for one in standing)
    return [
        LeaseEnd(one.lease.host_id, one.lease.batch_id, why, of_use=one.given or one.unsent <= 0)
        for one, why in reasons
        if why is not None
    ]


def _waiting(one: BigBatch, gpus: Mapping[AppId, str], *, is_blocked: bool) -> WaitingBigJob:
    gpu = gpus.get(one.app_id)
    asked = Request(one.cores, one.memory_bytes, one.disk_bytes, () if gpu is None else ((gpu, 1.0),))
    return WaitingBigJob(one.batch_id, asked, is_blocked, one.sent)
