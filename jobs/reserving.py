"""Reserves capacity for big jobs: job array slots and leases. Also tracks homogeneous-redundancy classes.

Steps: 1 read the waiting batches that may have big jobs, in order; 2 treat batches with no job sent since the last
round as blocked, and reserve slots for the first of them (priority/big_jobs.py); 3 end leases that have expired, with a
reason. Hosts are read for classes only while jobs with homogeneous redundancy wait.
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

Line = tuple[AppId, int]  # an app and a homogeneous-redundancy type


class ClassSearch:
    """Tracks homogeneous-redundancy classes. Runs once per cluster."""

    def __init__(self, work: RedundantWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock

    async def run_once(self) -> HostClasses:
        """Run one round and store the classes for scheduler requests."""
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
    """Return all classes per app and type, from hosts with a platform for which the app has a version. Pure.

    `lines` has the unsent work committed to each class. Hosts of unknown class are skipped.
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


LOOKED_AT = 4  # number of batches read per slot to reserve
MORE_LOOKED_AT = 20  # plus this number, because batches that hosts take anyway need no slot
RESTS_S = DAY_S  # a host whose lease was not used gets no new lease for this long


@dataclass(frozen=True, slots=True)
class ReservingReport:
    """The result of one round: slots reserved in total and newly, valid leases, and leases ended.

    `changed`: the reservations differ from those of the last round, which another process may have run.
    """

    kept: int = 0
    newly_kept: int = 0
    leases: int = 0
    ended: int = 0
    changed: bool = field(default=False, compare=False)


class Reserver:
    """Reserves slots and ends leases. Runs once per cluster; if two instances run, the last round wins."""

    def __init__(self, work: ReservedWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._sent: Mapping[BatchId, int] = {}  # instances of big batches sent until the last round
        self._last: object = ((), ())  # slots and leases after the last round
        self._log = structlog.get_logger("jobs.reserving")

    async def run_once(self) -> ReservingReport:
        """Run one round. Without `ordering.reservation_slots`, no slots are reserved, and existing leases expire."""
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
        now_reserved = (tuple(kept), tuple(one.lease for one in standing if one.lease.host_id not in ended))
        changed, self._last = now_reserved != self._last, now_reserved
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
    """Return, for each resource, the smallest request that makes a job `least_pe` PE on the reference host. Pure.

    PE = host cores * the largest requested / available, so r >= PE * available / cores; inf if the host has none.

    >>> least_big(Reference(Instant(0.0), Request(8.0, memory_bytes=16e9)), 4.0)
    Request(cores=4.0, memory_bytes=8000000000.0, disk_bytes=inf, gpus=())
    """
    host = reference.host
    per_core = least_pe / host.cores
    memory, disk = (per_core * had if had > 0.0 else math.inf for had in (host.memory_bytes, host.disk_bytes))
    return Request(least_pe, memory, disk)


def ends_of(standing: Sequence[LeaseStanding], *, slack_s: Seconds, now: Instant) -> list[LeaseEnd]:
    """Return the leases that must end, with reasons. Pure."""
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
