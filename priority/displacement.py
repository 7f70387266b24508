"""Decides whether a job may displace other work on its host. Pure.

A job whose deadline makes the client run it first preempts other work. The rules follow NCI's suspension score; its
formula is not published, so this one is our own: each factor can veto, and the score must be positive. The client
decides which work it suspends, and work of other projects is not visible. Off by default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from domain.formatting import in_words
from domain.units import Instant, Seconds

MOST_STRETCHED = 1.25  # maximum expansion factor of displaced work
SIZE_WEIGHT, OWNER_WEIGHT, DONE_WEIGHT = 1.0, 0.5, 2.0


@dataclass(frozen=True, slots=True)
class UnderWay:
    """One of the project's instances on the host, as last reported: seconds left, runtime limit, due date."""

    name: str
    cores: float
    remaining_s: Seconds
    limit_s: Seconds
    due_at: Instant
    reported_at: Instant
    owners_running: int = 1  # its submitter's instances in progress on all hosts

    def left_s(self, now: Instant) -> Seconds:
        """Return the seconds left now: the seconds last reported minus the time elapsed since, at least 0."""
        return Seconds(max(0.0, self.remaining_s - max(0.0, now - self.reported_at)))

    def done_fraction(self, now: Instant) -> float:
        """Return PERCENT as documented: elapsed time divided by the limit."""
        return min(1.0, max(0.0, 1.0 - self.left_s(now) / self.limit_s)) if self.limit_s > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class DisplacingJob:
    """The job that would run first."""

    cores: float
    runtime_s: Seconds
    due_at: Instant
    owners_running: int = 0


def veto(
    job: DisplacingJob,
    under_way: Sequence[UnderWay],
    *,
    host_cores: float,
    now: Instant,
    most_stretched: float = MOST_STRETCHED,
) -> str | None:
    """Return why the job may not be sent, or None if it may.

    It may if (limit + suspension) / limit is at most 1.25 for all displaced work, no displaced work misses its due date
    with earliest-deadline-first scheduling, and every displaced instance has a positive score.

    score = size ratio + 0.5 * log2((running of its owner + 1) / (running of ours + 1)) - 2 * done^2

    >>> old = UnderWay("old", 4.0, Seconds(9000.0), Seconds(10000.0), Instant(1e6), Instant(0.0))
    >>> veto(DisplacingJob(4.0, Seconds(1000.0), Instant(2000.0)), [old], host_cores=4.0, now=Instant(0.0))
    >>> longer = DisplacingJob(4.0, Seconds(3000.0), Instant(4000.0))
    >>> veto(longer, [old], host_cores=4.0, now=Instant(0.0))
    'old would be stretched to 1.3 of its limit, at most 1.25'
    """
    ends = _simulated(job, under_way, host_cores, now)
    if ends[0] > job.due_at:
        return f"would end {in_words(ends[0] - job.due_at)} after its own due date"
    before = _simulated(None, under_way, host_cores, now)
    for one, end_at, without_at in zip(under_way, ends[1:], before, strict=True):
        if end_at > one.due_at and end_at > without_at:
            return f"{one.name} would end {in_words(end_at - one.due_at)} after its due date"
        put_off_s = end_at - without_at
        if put_off_s <= 0.0:
            continue
        stretched = (one.limit_s + put_off_s) / one.limit_s if one.limit_s > 0.0 else math.inf
        if stretched > most_stretched + 1e-9:
            return f"{one.name} would be stretched to {stretched:.3g} of its limit, at most {most_stretched:g}"
        if (points := score(job, one, now)) <= 0.0:
            return f"{one.name} may not be delayed: score {points:.3g} is not positive"
    return None


def score(job: DisplacingJob, one: UnderWay, now: Instant) -> float:
    """Return the score for delaying an instance. Bigger jobs, and submitters with less work in progress, score higher.

    >>> half = UnderWay("half", 1.0, Seconds(50.0), Seconds(100.0), Instant(1e6), Instant(0.0), owners_running=3)
    >>> score(DisplacingJob(2.0, Seconds(10.0), Instant(1e6), owners_running=0), half, Instant(0.0))
    2.5
    """
    size = job.cores / one.cores if one.cores > 0.0 else job.cores
    owners = math.log2((one.owners_running + 1) / (job.owners_running + 1))
    done = one.done_fraction(now)
    return SIZE_WEIGHT * size + OWNER_WEIGHT * owners - DONE_WEIGHT * done * done


def _simulated(
    job: DisplacingJob | None, under_way: Sequence[UnderWay], host_cores: float, now: Instant
) -> list[float]:
    """Return each instance's end under list scheduling on cores: the new job first, then instances by due date."""
    cores = [now] * max(1, int(host_cores))
    ends = [0.0] * len(under_way)
    result = list[float]()
    if job is not None:
        result.append(_run(cores, job.cores, job.runtime_s))
    for number in sorted(range(len(under_way)), key=lambda one: (under_way[one].due_at, one)):
        one = under_way[number]
        ends[number] = _run(cores, one.cores, one.left_s(now))
    return result + ends


def _run(cores: list[Instant], wanted: float, seconds: float) -> float:
    """Occupy the cores that become free first, and return when this ends."""
    number = min(len(cores), max(1, math.ceil(wanted)))
    cores.sort()
    end_at = Instant(cores[number - 1] + seconds)
    cores[:number] = [end_at] * number
    return end_at
