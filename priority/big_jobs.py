"""Reserves capacity for big jobs: slots in the job array, and leases on hosts. Pure.

Slots of the job array are reserved for the first few big jobs without a suitable host, until a job is sent or a time
limit is reached. A busy host with many cores is leased: jobs sent to it before the lease starts must end by then or
leave enough cores free.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from domain.apps import CPU, ProcessorType
from domain.formatting import in_words, told
from domain.insight import SILENT_INTERVALS
from domain.ordering import Request
from domain.reservations import Kept, Lease, LeaseStanding
from domain.units import BatchId, HostId, Instant, Seconds
from priority.scheme import request_pe

INSTANT_S = 1e-6  # shorter durations count as 0


@dataclass(frozen=True, slots=True)
class CoreRequest:
    """A job that needs some cores for at most `limit_s`."""

    job: Hashable
    cores: float
    limit_s: Seconds


@dataclass(frozen=True, slots=True)
class CoreUse:
    """Cores used between two instants by a running job, which is assumed to run until its limit."""

    job: Hashable
    cores: float
    start_at: Instant
    end_at: Instant


def earliest(job: CoreRequest, taken: Sequence[CoreUse], *, cores: float, now: Instant) -> Instant:
    """Return the earliest instant from which `job.cores` cores stay free until the job's limit.

    >>> busy = [CoreUse("b", 1, Instant(0.0), Instant(5.0))]
    >>> earliest(CoreRequest("a", 2, Seconds(10.0)), busy, cores=2, now=Instant(1.0))
    5.0
    """
    for start_at in sorted({now, *(one.end_at for one in taken if one.end_at > now)}):
        if _free(job, taken, cores, Instant(start_at)):
            return Instant(start_at)
    return Instant(math.inf)


def _free(job: CoreRequest, taken: Sequence[CoreUse], cores: float, start_at: Instant) -> bool:
    """Return whether the job fits when started at `start_at`; only the starts of other uses need to be checked."""
    end_at = start_at + job.limit_s - INSTANT_S
    moments = [start_at, *(one.start_at for one in taken if start_at < one.start_at < end_at)]
    return all(_used(taken, moment) + job.cores <= cores + 1e-9 for moment in moments)


def _used(taken: Iterable[CoreUse], moment: float) -> float:
    return sum(one.cores for one in taken if one.start_at <= moment + INSTANT_S < one.end_at)


# ---- reserved slots and leases


@dataclass(frozen=True, slots=True)
class WaitingBigJob:
    """A batch of big jobs that has unsent jobs. `blocked`: no host that contacted the server could take its jobs.

    `sent` is the number of its instances sent so far.
    """

    batch_id: BatchId
    request: Request
    blocked: bool = True
    sent: int = 0


def is_big(request: Request, reference: Request, least_pe: float) -> bool:
    """Return whether a job is big: it needs a GPU, or at least `least_pe` processor equivalents.

    >>> is_big(Request(1.0, gpus=(("NVIDIA", 1.0),)), Request(8.0), 4.0), is_big(Request(2.0), Request(8.0), 4.0)
    (True, False)
    """
    return any(number > 0.0 for _, number in request.gpus) or request_pe(request, reference) >= least_pe


def kept_slots(
    waiting: Sequence[WaitingBigJob],
    kept: Iterable[Kept],
    *,
    depth: int,
    reference: Request,
    least_pe: float,
    longest_s: Seconds,
    now: Instant,
) -> list[Kept]:
    """Return the slots to reserve, at most `depth`. A slot stays reserved until its job is sent or the slot is too old.

    A job that moves ahead does not take a reservation away; otherwise a stream of small jobs could starve a big job.

    >>> big = [WaitingBigJob(BatchId(1), Request(8.0)), WaitingBigJob(BatchId(2), Request(8.0))]
    >>> slots = kept_slots(big, [Kept(BatchId(2), Instant(5.0))], depth=1, reference=Request(8.0), least_pe=4.0,
    ...                    longest_s=Seconds(100.0), now=Instant(10.0))
    >>> [slot.batch_id for slot in slots]
    [2]
    """
    big = {one.batch_id: one.sent for one in waiting if one.blocked and is_big(one.request, reference, least_pe)}
    given_up = {slot.batch_id for slot in kept if now - slot.since >= longest_s}
    standing = [slot for slot in kept if big.get(slot.batch_id) == slot.sent and slot.batch_id not in given_up][:depth]
    have = {slot.batch_id for slot in standing} | given_up
    new = [Kept(batch_id, now, sent) for batch_id, sent in big.items() if batch_id not in have]
    return standing + new[: max(0, depth - len(standing))]


def lease(
    *,
    batch_id: BatchId,
    cores: float,
    limit_s: Seconds,
    host_id: HostId,
    host_cores: float,
    under_way: Iterable[CoreUse],
    slack_s: Seconds,
    now: Instant,
    processor_type: ProcessorType = CPU,
) -> Lease | None:
    """Return a lease from the earliest instant at which the host's jobs in progress leave `cores` free, or None.

    This is called again at each of the host's requests, and advances the lease when work ends early.

    >>> busy = [CoreUse("x", 2.0, Instant(0.0), Instant(50.0))]
    >>> made = lease(batch_id=BatchId(1), cores=4.0, limit_s=Seconds(100.0), host_id=HostId(9), host_cores=4.0,
    ...              under_way=busy, slack_s=Seconds(60.0), now=Instant(10.0))
    >>> made.start_at, made.expires_at
    (50.0, 110.0)
    """
    if cores > host_cores:
        return None
    taken = [CoreUse(one.job, one.cores, one.start_at, Instant(max(now, one.end_at))) for one in under_way]
    start_at = earliest(CoreRequest(batch_id, cores, limit_s), taken, cores=host_cores, now=now)
    if not math.isfinite(start_at):
        return None
    return Lease(batch_id, host_id, cores, start_at, limit_s, Instant(start_at + slack_s), processor_type, now)


def lease_conflict(
    lease: Lease,
    *,
    cores: float,
    limit_s: Seconds,
    host_cores: float,
    under_way: Iterable[CoreUse],
    now: Instant,
    slack_s: Seconds = Seconds(0.0),
) -> str | None:
    """Return why a leased host may not get a job now. None: the job ends before the lease or leaves enough cores free.

    The job may end up to `slack_s` after the start of the lease.

    >>> held = Lease(BatchId(1), HostId(9), 4.0, Instant(50.0), Seconds(100.0), Instant(90.0))
    >>> lease_conflict(held, cores=1.0, limit_s=Seconds(60.0), host_cores=4.0, under_way=[], now=Instant(0.0))
    'the host is leased to batch 1 in 50 s: this job would end 10 s later and leave it 3 of 4 cores'
    """
    end_at, latest_at = now + limit_s, lease.start_at + slack_s + INSTANT_S
    if not lease.holds(now) or end_at <= latest_at or now >= lease.start_at + lease.limit_s:
        return None
    busy = sum(one.cores for one in under_way if one.end_at > latest_at)
    left = host_cores - busy - cores
    if left >= lease.cores:
        return None
    begins_s, into_s = max(0.0, lease.start_at - now), end_at - lease.start_at
    return (
        f"the host is leased to batch {lease.batch_id} in {in_words(begins_s)}: this job would end "
        f"{in_words(into_s)} later and leave it {max(0.0, left):g} of {lease.cores:g} cores"
    )


def least_bad(candidates: Iterable[tuple[int, Seconds]]) -> list[int]:
    """Return the candidates for a leased host with idle processors when no job fits around the lease.

    The job with the shortest run time comes first.

    >>> least_bad([(1, Seconds(50.0)), (2, Seconds(20.0))])
    [2, 1]
    """
    return [number for number, _ in sorted(candidates, key=lambda one: (one[1], one[0]))]


def given_back(standing: LeaseStanding, *, slack_s: Seconds, now: Instant) -> str | None:
    """Return why a lease ends now; None while it is valid.

    It ends when it has served its purpose (the host got the job, or the batch has no unsent job), when the host has
    been silent for three of its own intervals plus the slack, or when it expires.

    >>> lease = Lease(BatchId(1), HostId(9), 4.0, Instant(50.0), Seconds(100.0), Instant(90.0))
    >>> given_back(LeaseStanding(lease, 3, False, Instant(0.0)), slack_s=Seconds(40.0), now=Instant(60.0))
    'host 9 has been silent for 60 s; limit 40 s'
    """
    lease = standing.lease
    if standing.given:
        return f"host {lease.host_id} was sent a job of batch {lease.batch_id}"
    if standing.unsent <= 0:
        return f"batch {lease.batch_id} has no unsent job left"
    if now >= lease.expires_at:
        ago, after = in_words(now - lease.expires_at), in_words(lease.expires_at - lease.start_at)
        return f"expired {ago} ago, {after} after its start"
    patience_s = max(slack_s, SILENT_INTERVALS * (standing.rpc_interval_s or 0.0))
    silent_s = now - standing.last_rpc_at
    if silent_s > patience_s:
        return told(
            "host {0} has been silent for {1:length}; limit {2:length}",
            lease.host_id,
            silent_s,
            patience_s,
        )
    return None
