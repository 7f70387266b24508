"""Models a client's work buffer: when it contacts the server, how much work it requests, and what it reports.

A client keeps work for `min_s` to `min_s + additional_s` (docs/protocol.md). It contacts the server when a processor
would be idle before the lower end, and requests the work missing to the upper end. Other projects' work always fills
their share.

It checks its buffer and finished jobs when it is switched on, when a job ends, when it may call again, and CHECK_S
after each check. It then calls the server if a report is due (immediately for 64 results or for a result due within a
day or within its work buffer, otherwise an hour after the job's end), or if a buffer is below its lower end and it is
not backing off. It calls no later than the server requested. Request delays take precedence, and so do pauses of
60 * 2^n * U(0.5..1) s, at most 4 h, after n calls without an answer; a failed job counts as one. If a call only for
work gets none, the client backs off by 600 * 2^n * U(0.5..1.5) s, at most a day and a half, until it gets a job or a
job ends. Checks that would find nothing are skipped, because the client knows a lower bound on when its buffer is low.
"""

from __future__ import annotations

import math
import random
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass

from domain.quick import quick_dataclass
from domain.units import DAY_S, HOUR_S, Instant, Seconds
from simulator.availability import Availability
from simulator.processors import Processors, Task
from wire.messages import InProgress

LEAST_BUFFER_S = 180.0
OTHERS_DUE_S = 7 * DAY_S  # deadline of other projects' jobs


@dataclass(frozen=True, slots=True)
class Buffer:
    """A client's preferences for stored work."""

    min_s: Seconds
    additional_s: Seconds

    @property
    def full_s(self) -> Seconds:
        return Seconds(max(LEAST_BUFFER_S, self.min_s) + self.additional_s)

    @property
    def margin_s(self) -> Seconds:
        """Return how long before its deadline a client wants a task to end."""
        return Seconds(max(LEAST_BUFFER_S, self.min_s))


@quick_dataclass(frozen=True, slots=True)
class Wish:
    """The part of a work request for one type of processor."""

    req_s: Seconds = Seconds(0.0)
    instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)


NO_WISH = Wish()
FIRST_WISH = Wish(Seconds(1.0))  # the first call, before the client has a host id


def wish_of(processors: Processors, buffer: Buffer) -> Wish:
    """Return the instance-seconds of wall-clock time missing to the upper end, never negative.

    A job longer than the buffer covers only its own processors. A processor is idle if it has neither tasks of this
    project nor other work. `estimated_delay_s` is the time until a processor is free of tasks in danger.

    >>> from simulator.availability import Availability
    >>> idle = Processors(4, 0.5, Seconds(0.0), Availability(iter(()), start_at=Instant(0.0)), Instant(0.0))
    >>> wish_of(idle, Buffer(Seconds(3600.0), Seconds(3600.0)))
    Wish(req_s=14400.0, instances=2.0, estimated_delay_s=0.0)
    """
    capacity, fraction = processors.count * processors.share, max(0.01, processors.fraction)
    if not processors.tasks:
        return Wish(Seconds(capacity * buffer.full_s), float(math.floor(capacity + 1e-9)))
    part = _part(capacity)
    missing_s = sum([part * max(0.0, buffer.full_s - one / fraction) for one in free_s(processors)])
    if missing_s <= 0.0:
        return NO_WISH
    used = sum(task.share * task.usage for task in processors.tasks)
    return Wish(
        Seconds(missing_s),
        float(math.floor(max(0.0, capacity - used) + 1e-9)),
        _free_of_danger_s(processors, fraction),
    )


def free_s(processors: Processors) -> list[float]:
    """Return the on seconds until each processor of this project's share is free, ascending, if tasks run in order.

    If a share is not a whole number of processors, all its processors are slower by the same factor.

    >>> from simulator.availability import Availability
    >>> some = Processors(3, 0.5, Seconds(0.0), Availability(iter(()), start_at=Instant(0.0)), Instant(0.0))
    >>> some.tasks.append(Task("a", Instant(1e6), 90.0, 90.0, 90.0))
    >>> free_s(some)
    [0.0, 120.0]
    """
    capacity = processors.count * processors.share
    part = _part(capacity)
    free = [0.0] * round(capacity / part)
    for task in processors.tasks:
        needed, length_s = _length(task, part, len(free))
        end_s = free[needed - 1] + length_s
        del free[:needed]
        for _ in range(needed):
            insort(free, end_s)
    return free


def _part(capacity: float) -> float:
    """Return the speed of each processor of a share."""
    return capacity / max(1, math.ceil(capacity - 1e-9))


def _length(task: Task, part: float, count: int) -> tuple[int, float]:
    """Return how many of `count` processors of this speed a task uses, and for how long."""
    needed = min(count, max(1, math.ceil(task.usage - 1e-9)))
    return needed, task.remaining_s * task.usage / (needed * part)


def low_after_s(processors: Processors, buffer: Buffer) -> float:
    """Return for how many on seconds the buffer stays above its lower end, unless a task ends earlier; 0 if it is low.

    >>> from simulator.availability import Availability
    >>> one = Processors(1, 1.0, Seconds(0.0), Availability(iter(()), start_at=Instant(0.0)), Instant(0.0))
    >>> one.tasks.append(Task("a", Instant(1e6), 9000.0, 9000.0, 9000.0, share=1.0))
    >>> low_after_s(one, Buffer(Seconds(3600.0), Seconds(0.0)))
    5400.0
    """
    tasks = processors.tasks
    if not tasks:
        return 0.0
    least_s = buffer.margin_s * max(0.01, processors.fraction)
    capacity = processors.count * processors.share
    work_s = [task.remaining_s * task.usage for task in tasks]
    covered_s = -math.inf
    if max([task.usage for task in tasks]) <= 1.0:  # no processor is then free a task before the average one
        covered_s = sum(work_s) / capacity - max(work_s) / _part(capacity)
    if covered_s <= least_s:
        covered_s = free_s(processors)[0]
    return (covered_s - least_s) / _drain(processors) if covered_s > least_s else 0.0


def _drain(processors: Processors) -> float:
    """Return an upper bound on how much the first of `free_s` shrinks per on second until the next task ends.

    The first tasks are running, each on its own processors, and the k-th smallest sum of lengths shrinks at most as
    fast as the fastest of them: by more than a second per second if estimates are too long, or if the client gives a
    task more than its part. Tasks that share a processor are combined, and so are all if some do not run in order.
    """
    capacity = processors.count * processors.share
    part = _part(capacity)
    count = round(capacity / part)
    together = fastest = 0.0
    in_order = not any(task.in_danger or task.lost for task in processors.tasks)
    for task in processors.tasks:
        if task.share <= 0.0:
            continue
        needed = min(count, max(1, math.ceil(task.usage - 1e-9)))
        drift = max(1.0, 2.0 * task.estimate_s / task.true_s - 1.0)  # fraction of `remaining_s`, at its start
        if not in_order or task.usage < 1.0:
            together += drift * task.share * task.usage / part
        else:
            fastest = max(fastest, drift * task.share * task.usage / (needed * part))
    return max(1.0, together + fastest)


def _free_of_danger_s(processors: Processors, fraction: float) -> Seconds:
    """Return the seconds until a processor is free of tasks in danger, 0 if one is free now."""
    endangered = sorted(
        (task.due_at, task.name, task.remaining_s, task.usage) for task in processors.tasks if task.in_danger
    )
    if sum(usage for *_, usage in endangered) < processors.count:
        return Seconds(0.0)
    free = [0.0] * processors.count
    for _, _, left_s, usage in endangered:
        needed = min(len(free), max(1, math.ceil(usage)))
        end_s = free[needed - 1] + left_s
        free = sorted((*free[needed:], *([end_s] * needed)))
    return Seconds(free[0] / fraction)


def in_progress(tasks: Iterable[Task], gpu_type: str) -> list[InProgress]:
    """Return the tasks for one type of processor in the form of a request. An empty `gpu_type` means the CPU."""
    return [
        InProgress(task.name, task.due_at, Seconds(task.remaining_s), task.ncpus, gpu_type, task.gpu_count)
        for task in tasks
    ]


def work_of_others(processors: Processors, buffer: Buffer, now: Instant) -> tuple[InProgress, ...]:
    """Return the work of other projects in the buffer: one job per processor of their share, all of the same length.

    >>> from simulator.availability import Availability
    >>> half = Processors(3, 0.5, Seconds(0.0), Availability(iter(()), start_at=Instant(0.0)), Instant(0.0))
    >>> [one.remaining_s for one in work_of_others(half, Buffer(Seconds(3600.0), Seconds(0.0)), Instant(0.0))]
    [2700.0, 2700.0]
    """
    theirs = processors.count * (1.0 - processors.share)
    if theirs <= 1e-9:
        return ()
    jobs = math.ceil(theirs - 1e-9)
    length_s = Seconds(buffer.full_s * theirs / jobs * processors.fraction)
    due_at = Instant(now + OTHERS_DUE_S)
    return tuple(InProgress(f"other_{number}", due_at, length_s) for number in range(jobs))


CHECK_S = 60.0
ROUNDING = 1e-6  # interval of checks; divides the hour of a report
LEAST_DELAY_S = 5.0  # minimum time between two calls
REPORT_AFTER_S = HOUR_S
MOST_RESULTS = 64  # this many finished jobs are reported immediately
FIRST_RETRY_S = 60.0
MOST_RETRY_S = 4 * HOUR_S
FIRST_BACKOFF_S = 600.0
MOST_BACKOFF_S = DAY_S


@dataclass(slots=True)
class Calls:
    """Decides when one client calls the server. `checked_at` is its last check, initially its first call."""

    checked_at: Instant
    buffer_s: Seconds
    availability: Availability
    draw: random.Random
    report_at: float = math.inf
    not_before_at: float = -math.inf
    contact_at: float = math.inf  # time by which the server requested a call
    failures: int = 0
    _known: tuple[float, float, float] | None = None  # the arguments for which `_next_at` was computed
    _next_at: float = math.inf

    @property
    def soon_s(self) -> float:
        """Return the time before its deadline from which a result is reported immediately."""
        return max(DAY_S, self.buffer_s)

    def next_at(self, low_from_at: float) -> float:
        """Return when the client next checks or calls if no event happens before and its buffer is not low before
        `low_from_at`.
        """
        wanted_at = min(low_from_at, self.report_at)
        first_at = max(self.checked_at, self.not_before_at)
        if (wanted_at, first_at, self.contact_at) != self._known:
            self._known = (wanted_at, first_at, self.contact_at)
            called_at = (
                self.availability.on_from(max(self.contact_at, first_at)) if self.contact_at < math.inf else math.inf
            )
            self._next_at = min(self._check_from(wanted_at, first_at), called_at)
        return self._next_at

    def _check_from(self, at: float, first_at: float) -> float:
        """Return the first check at or after `at` if no event happens before. Checks are at `first_at`, every CHECK_S
        after that, and whenever the host is switched on.
        """
        if at == math.inf:
            return math.inf
        on_at = self.availability.on_from(max(at, first_at))
        if on_at > at or on_at == math.inf:
            return on_at
        begin_at = max(first_at, self.availability.on_since(at))
        checks = max(1, math.ceil((at - begin_at) / CHECK_S - ROUNDING)) if at > begin_at else 0
        return self.availability.on_from(max(at, begin_at + checks * CHECK_S))

    def is_due(self, now: Instant) -> bool:
        """Return whether the client calls at `now` regardless of its buffer."""
        return now >= self.contact_at or now >= self.report_at

    def ended(self, due_at: Instant, at: Instant, *, waiting: int) -> None:
        """Record that a job ended and that `waiting` results must be reported. The client makes a check."""
        self.checked_at = max(self.checked_at, at)
        at_once = due_at - at < self.soon_s or waiting >= MOST_RESULTS
        self.report_at = min(self.report_at, at if at_once else at + REPORT_AFTER_S)

    def answered(self, now: Instant, delay_s: Seconds, contact_s: Seconds | None = None) -> None:
        self.failures = 0
        self.contact_at = now + contact_s if contact_s else math.inf
        self.report_at = math.inf
        self.not_before_at = now + max(LEAST_DELAY_S, delay_s)

    def failed(self, at: Instant) -> None:
        """Record a call without an answer, or a failed job."""
        self.failures += 1
        wait_s = min(MOST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self.failures, 30) * self.draw.uniform(0.5, 1.0))
        self.not_before_at = max(self.not_before_at, at + wait_s)

    def backoff_s(self, times: int) -> float:
        """Return the back-off for a type of processor after `times` successive requests without work."""
        return min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(times - 1, 30)) * self.draw.uniform(0.5, 1.5)
