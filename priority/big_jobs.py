"""How does a job that needs much of a host get one? Pure.

Slots of the job array are kept for the first few big jobs that find no host, until they are sent or too long there; and
a busy host with many cores is leased: what it is sent until then ends before, or leaves enough cores free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.ordering import Request
from domain.units import BatchId, HostId, Instant, JobId, Seconds
from priority.moment import request_pe
from priority.reservations import INSTANT_S, Taken, Wanting, earliest


@dataclass(frozen=True, slots=True)
class Kept:
    """A slot kept for a big job since some instant. Ordinary jobs cannot take it."""

    batch_id: BatchId
    since: Instant


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch with unsent jobs, in the order of its place; `blocked`: hosts that asked could not take it."""

    batch_id: BatchId
    request: Request
    blocked: bool = True


def is_big(request: Request, reference: Request, least_pe: float) -> bool:
    """Whether a job is big: any GPU, or at least so many processor equivalents.

    >>> is_big(Request(1.0, gpus=(("NVIDIA", 1.0),)), Request(8.0), 4.0), is_big(Request(2.0), Request(8.0), 4.0)
    (True, False)
    """
    return any(number > 0.0 for _, number in request.gpus) or request_pe(request, reference) >= least_pe


def kept_slots(
    waiting: Sequence[Waiting],
    kept: Iterable[Kept],
    *,
    depth: int,
    reference: Request,
    least_pe: float,
    longest_s: Seconds,
    now: Instant,
) -> list[Kept]:
    """The slots kept from now on, at most `depth`. Once kept, a slot is kept until its job is sent, or too old.

    A newly higher job takes nothing away: else a big job never gets through a stream of small ones.

    >>> big = [Waiting(BatchId(1), Request(8.0)), Waiting(BatchId(2), Request(8.0))]
    >>> slots = kept_slots(big, [Kept(BatchId(2), Instant(5.0))], depth=1, reference=Request(8.0), least_pe=4.0,
    ...                    longest_s=Seconds(100.0), now=Instant(10.0))
    >>> [slot.batch_id for slot in slots]
    [2]
    """
    big = [one.batch_id for one in waiting if one.blocked and is_big(one.request, reference, least_pe)]
    given_up = {slot.batch_id for slot in kept if now - slot.since >= longest_s}
    standing = [slot for slot in kept if slot.batch_id in big and slot.batch_id not in given_up][:depth]
    have = {slot.batch_id for slot in standing} | given_up
    new = [Kept(batch_id, now) for batch_id in dict.fromkeys(big) if batch_id not in have]
    return standing + new[: max(0, depth - len(standing))]


@dataclass(frozen=True, slots=True)
class Lease:
    """A host's future promised to a job: `cores` from `start_at` for `limit_s`; void from `expires_at` on."""

    job_id: JobId
    host_id: HostId
    cores: float
    start_at: Instant
    limit_s: Seconds
    expires_at: Instant


def lease(
    *,
    job_id: JobId,
    cores: float,
    limit_s: Seconds,
    host_id: HostId,
    host_cores: float,
    under_way: Iterable[Taken],
    slack_s: Seconds,
    now: Instant,
) -> Lease | None:
    """A lease on the host, from the earliest instant at which its in-progress list leaves `cores` free; None: never.

    Called again at each of the host's requests, it slides forward when work ends early.

    >>> made = lease(job_id=JobId(1), cores=4.0, limit_s=Seconds(100.0), host_id=HostId(9), host_cores=4.0,
    ...              under_way=[Taken("x", 2.0, Instant(0.0), Instant(50.0))], slack_s=Seconds(60.0), now=Instant(10.0))
    >>> made.start_at, made.expires_at
    (50.0, 110.0)
    """
    if cores > host_cores:
        return None
    taken = [Taken(one.job, one.cores, one.start_at, Instant(max(now, one.end_at))) for one in under_way]
    start_at = earliest(Wanting(job_id, cores, limit_s), taken, cores=host_cores, now=now)
    if not math.isfinite(start_at):
        return None
    return Lease(job_id, host_id, cores, start_at, limit_s, Instant(start_at + slack_s))


def fits_around(
    lease: Lease, *, cores: float, limit_s: Seconds, host_cores: float, under_way: Iterable[Taken], now: Instant
) -> tuple[bool, str]:
    """Whether a job may be sent to a leased host now, and why: it ends before the lease, or leaves enough cores.

    >>> held = Lease(JobId(1), HostId(9), 4.0, Instant(50.0), Seconds(100.0), Instant(90.0))
    >>> fits_around(held, cores=1.0, limit_s=Seconds(60.0), host_cores=4.0, under_way=[], now=Instant(0.0))
    (False, 'would end 10 s into the lease of job 1 and leave it 3 of 4 cores')
    """
    if lease.expires_at <= now:
        return True, f"the lease of job {lease.job_id} has expired"
    end_at = now + limit_s
    if end_at <= lease.start_at + INSTANT_S:
        return True, f"ends {lease.start_at - end_at:.0f} s before the lease of job {lease.job_id}"
    if now >= lease.start_at + lease.limit_s:
        return True, f"starts after the lease of job {lease.job_id}"
    busy = sum(one.cores for one in under_way if one.end_at > lease.start_at + INSTANT_S)
    left = host_cores - busy - cores
    if left >= lease.cores:
        return True, f"leaves {left:g} cores for job {lease.job_id}"
    into_s = end_at - lease.start_at
    return False, (
        f"would end {into_s:.0f} s into the lease of job {lease.job_id} and leave it {left:g} of {lease.cores:g} cores"
    )


def least_bad(candidates: Sequence[tuple[JobId, Seconds]]) -> JobId | None:
    """What a leased host is sent when nothing fits around: never nothing, but the job with the shortest run time.

    >>> least_bad([(JobId(1), Seconds(50.0)), (JobId(2), Seconds(20.0))])
    2
    """
    return min(candidates, key=lambda one: (one[1], one[0]))[0] if candidates else None
