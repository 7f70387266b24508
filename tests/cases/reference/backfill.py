"""Reservation and backfill on one host, on the product's earliest start. Pure.

Jobs in order of priority: a job that fits now without delaying a promise starts; otherwise, while fewer than `depth`
promises exist, it is promised the earliest start that the limits of other jobs allow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from domain.formatting import in_words
from domain.units import Instant, Seconds
from priority.big_jobs import INSTANT_S, CoreRequest, CoreUse, earliest


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of one scheduling pass. Jobs that neither start nor are promised wait."""

    started: tuple[CoreUse, ...] = ()
    promised: tuple[CoreUse, ...] = ()
    because: Mapping[Hashable, str] = field(default_factory=dict)


def plan(
    queue: Iterable[CoreRequest], *, cores: float, running: Iterable[CoreUse] = (), now: Instant, depth: int | None = 1
) -> Plan:
    """Make one scheduling pass in order of priority. `depth` None: every job is promised a start (conservative).

    A running job past its limit is assumed to end now. A job that requests more cores than exist never starts and gets
    no promise.

    >>> looked = plan([CoreRequest("big", 2, Seconds(60.0)), CoreRequest("small", 1, Seconds(30.0))], cores=2,
    ...               running=[CoreUse("old", 1, Instant(0.0), Instant(50.0))], now=Instant(10.0))
    >>> [one.job for one in looked.started], [(one.job, one.start_at) for one in looked.promised]
    (['small'], [('big', 50.0)])
    """
    taken = [CoreUse(one.job, one.cores, one.start_at, Instant(max(one.end_at, now))) for one in running]
    started, promised, because = list[CoreUse](), list[CoreUse](), dict[Hashable, str]()
    for job in queue:
        if job.cores > cores:
            because[job.job] = f"requests {job.cores:g} of {cores:g} cores"
            continue
        start_at = earliest(job, taken, cores=cores, now=now)
        slot = CoreUse(job.job, job.cores, start_at, Instant(start_at + job.limit_s))
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


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A job of a rehearsal: `actual_s` is its true run time, at most its limit. Higher priority first."""

    wanting: CoreRequest
    submit_at: Instant = Instant(0.0)
    actual_s: Seconds | None = None
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result: when each job started, and the promises at the requested instants."""

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
    """Simulate these jobs on one host, with a pass at every submission and end and promises that move forward.

    Without `backfill` no job starts while an earlier one waits.

    >>> jobs = [Rehearsed(CoreRequest("a", 1, Seconds(10.0))), Rehearsed(CoreRequest("b", 2, Seconds(5.0)))]
    >>> dict(rehearse(jobs, cores=2).starts)
    {'a': 0.0, 'b': 10.0}
    """
    asked = sorted(set(asked_at))
    due = sorted({*asked, *(one.submit_at for one in jobs)}, reverse=True)
    order = sorted(jobs, key=lambda one: (-one.priority, one.submit_at))
    starts, promises = dict[Hashable, Instant](), dict[Instant, dict[Hashable, Instant]]()
    running: dict[Hashable, tuple[CoreUse, Instant]] = {}  # with its actual end
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
    """Return the plan without backfill: only jobs that start before the first waiting one."""
    started = {slot.job: slot for slot in looked.started}
    first = takewhile(lambda job: job in started, waiting)
    return Plan(tuple(started[job] for job in first), looked.promised, looked.because)


def _takes(job: Hashable, jobs: Sequence[Rehearsed]) -> float:
    for one in jobs:
        if one.wanting.job == job:
            limit_s = one.wanting.limit_s
            return limit_s if one.actual_s is None else min(one.actual_s, limit_s)
    return 0.0
