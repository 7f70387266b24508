"""When can a big job start, and who may run before it without delaying it? Pure.

Reservation and backfill: jobs in order of priority; one that fits now and delays no promise starts; otherwise, while
fewer than `depth` promises are held, it is promised the earliest start that the limits of others allow.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from domain.lengths import in_words
from domain.units import Instant, Seconds

INSTANT_S = 1e-6  # lengths of time below this are nothing


@dataclass(frozen=True, slots=True)
class Wanting:
    """A job that wants some cores for at most `limit_s`."""

    job: Hashable
    cores: float
    limit_s: Seconds


@dataclass(frozen=True, slots=True)
class Taken:
    """Cores taken from one instant to another: by a running job until its limit, or by a promise."""

    job: Hashable
    cores: float
    start_at: Instant
    end_at: Instant


@dataclass(frozen=True, slots=True)
class Plan:
    """What one look at the queue decided. Jobs that neither start nor are promised wait."""

    started: tuple[Taken, ...] = ()
    promised: tuple[Taken, ...] = ()
    because: Mapping[Hashable, str] = field(default_factory=dict)


def plan(
    queue: Iterable[Wanting], *, cores: float, running: Iterable[Taken] = (), now: Instant, depth: int | None = 1
) -> Plan:
    """One look at the queue, in order of priority. `depth` None: every job is promised a start (conservative).

    A running job past its limit is taken to end now. A job that wants more cores than there are never
    starts and is promised nothing.

    >>> looked = plan([Wanting("big", 2, Seconds(60.0)), Wanting("small", 1, Seconds(30.0))], cores=2,
    ...               running=[Taken("old", 1, Instant(0.0), Instant(50.0))], now=Instant(10.0))
    >>> [one.job for one in looked.started], [(one.job, one.start_at) for one in looked.promised]
    (['small'], [('big', 50.0)])
    """
    taken = [Taken(one.job, one.cores, one.start_at, Instant(max(one.end_at, now))) for one in running]
    started, promised, because = list[Taken](), list[Taken](), dict[Hashable, str]()
    for job in queue:
        if job.cores > cores:
            because[job.job] = f"wants {job.cores:g} cores where there are {cores:g}"
            continue
        start_at = earliest(job, taken, cores=cores, now=now)
        slot = Taken(job.job, job.cores, start_at, Instant(start_at + job.limit_s))
        if start_at - now < INSTANT_S:
            started.append(slot)
            because[job.job] = "fits now and delays no promise"
        elif depth is None or len(promised) < depth:
            promised.append(slot)
            because[job.job] = f"promised to start in {in_words(start_at - now)}"
        else:
            because[job.job] = f"waits behind {len(promised)} promises"
            continue
        taken.append(slot)
    return Plan(tuple(started), tuple(promised), because)


def earliest(job: Wanting, taken: Sequence[Taken], *, cores: float, now: Instant) -> Instant:
    """The earliest instant from which `job.cores` are free for the whole of its limit.

    >>> earliest(Wanting("a", 2, Seconds(10.0)), [Taken("b", 1, Instant(0.0), Instant(5.0))], cores=2, now=Instant(1.0))
    5.0
    """
    for start_at in sorted({now, *(one.end_at for one in taken if one.end_at > now)}):
        if _free(job, taken, cores, Instant(start_at)):
            return Instant(start_at)
    return Instant(math.inf)


def _free(job: Wanting, taken: Sequence[Taken], cores: float, start_at: Instant) -> bool:
    """Whether the job fits from `start_at` on: it can only collide where something else begins."""
    end_at = start_at + job.limit_s - INSTANT_S
    moments = [start_at, *(one.start_at for one in taken if start_at < one.start_at < end_at)]
    return all(_used(taken, moment) + job.cores <= cores + 1e-9 for moment in moments)


def _used(taken: Iterable[Taken], moment: float) -> float:
    return sum(one.cores for one in taken if one.start_at <= moment + INSTANT_S < one.end_at)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A job of a rehearsal: `actual_s` is what it takes, at most its limit. Higher priority first."""

    wanting: Wanting
    submit_at: Instant = Instant(0.0)
    actual_s: Seconds | None = None
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How it went: when each job started, and what was promised at the instants asked for."""

    starts: Mapping[Hashable, Instant]
    promises: Mapping[Instant, Mapping[Hashable, Instant]]


def rehearse(
    jobs: Sequence[Rehearsed],
    *,
    cores: float,
    depth: int | None = 1,
    backfill: bool = True,
    asked_at: Iterable[Instant] = (),
) -> Rehearsal:
    """What would happen to these jobs on one host: a look at every submission and end, promises sliding forward.

    Without `backfill` nobody starts while a job before it waits.

    >>> jobs = [Rehearsed(Wanting("a", 1, Seconds(10.0))), Rehearsed(Wanting("b", 2, Seconds(5.0)))]
    >>> dict(rehearse(jobs, cores=2).starts)
    {'a': 0.0, 'b': 10.0}
    """
    asked = sorted(set(asked_at))
    due = sorted({*asked, *(one.submit_at for one in jobs)}, reverse=True)
    order = sorted(jobs, key=lambda one: (-one.priority, one.submit_at))
    starts, promises = dict[Hashable, Instant](), dict[Instant, dict[Hashable, Instant]]()
    running: dict[Hashable, tuple[Taken, Instant]] = {}  # with the instant of its real end
    while due:
        now = due.pop()
        running = {job: one for job, one in running.items() if one[1] > now}
        waiting = [one for one in order if one.submit_at <= now and one.wanting.job not in starts]
        looked = plan(
            [one.wanting for one in waiting],
            cores=cores,
            running=[slot for slot, _ in running.values()],
            now=now,
            depth=depth,
        )
        looked = looked if backfill else _in_order(looked, [one.wanting.job for one in waiting])
        for slot in looked.started:
            starts[slot.job] = now
            end_at = Instant(now + _takes(slot.job, jobs))
            running[slot.job] = (slot, end_at)
            due = sorted({*due, end_at}, reverse=True)
        promises[now] = {slot.job: slot.start_at for slot in looked.promised}
    return Rehearsal(starts, {at: promises[at] for at in asked})


def _in_order(looked: Plan, waiting: Iterable[Hashable]) -> Plan:
    """The same without backfill: only what starts before the first that must wait."""
    started = {slot.job: slot for slot in looked.started}
    first = takewhile(lambda job: job in started, waiting)
    return Plan(tuple(started[job] for job in first), looked.promised, looked.because)


def _takes(job: Hashable, jobs: Sequence[Rehearsed]) -> float:
    for one in jobs:
        if one.wanting.job == job:
            limit_s = one.wanting.limit_s
            return limit_s if one.actual_s is None else min(one.actual_s, limit_s)
    return 0.0
