"""How much work does a client ask for, and what does it say of its queue? Pure. PROTOCOL 3 and 9.

It keeps work for `min_s` to `min_s + additional_s`. It asks when the lower end would not be covered until it can ask
again, and then for what is missing of the upper end. Other projects' work fills its share of the buffer at all times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from domain.quick import quick_dataclass
from domain.units import DAY_S, Instant, Seconds
from simulator.processors import Processors, Task
from wire.messages import InProgress

LEAST_BUFFER_S = 180.0
OTHERS_DUE_S = 7 * DAY_S  # when other projects want their jobs back


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
        """So long before its deadline a client wants a task to be over."""
        return Seconds(max(LEAST_BUFFER_S, self.min_s))


@quick_dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of one kind of processor, in the fields of a request."""

    req_s: Seconds = Seconds(0.0)
    instances: float = 0.0
    estimated_delay_s: Seconds = Seconds(0.0)


NO_WISH = Wish()


def wish_of(processors: Processors, buffer: Buffer, *, interval_s: Seconds) -> Wish:
    """Instance-seconds that are missing, in time on the wall; never negative.

    Idle are processors that neither this project's tasks nor others' work have. `estimated_delay_s` is when the first
    processor is free of tasks in danger.

    >>> from simulator.availability import Availability
    >>> idle = Processors(4, 0.5, Seconds(0.0), Availability(iter(()), start_at=Instant(0.0)), Instant(0.0))
    >>> wish_of(idle, Buffer(Seconds(3600.0), Seconds(3600.0)), interval_s=Seconds(21600.0))
    Wish(req_s=14400.0, instances=2.0, estimated_delay_s=0.0)
    """
    capacity, fraction = processors.count * processors.share, max(0.01, processors.fraction)
    if not processors.tasks:
        return Wish(Seconds(capacity * buffer.full_s), float(math.floor(capacity + 1e-9)))
    queued_s = sum(task.remaining_s * task.usage for task in processors.tasks) / fraction
    covered_s = queued_s / capacity
    if covered_s >= min(buffer.min_s + interval_s, buffer.full_s):
        return NO_WISH
    used = sum(task.share * task.usage for task in processors.tasks)
    return Wish(
        Seconds(max(0.0, capacity * buffer.full_s - queued_s)),
        float(math.floor(max(0.0, capacity - used) + 1e-9)),
        _free_of_danger_s(processors, fraction),
    )


def _free_of_danger_s(processors: Processors, fraction: float) -> Seconds:
    """Seconds until the first processor is free of tasks in danger; 0 while one has none."""
    urgent = sorted(
        (task.due_at, task.name, task.remaining_s, task.usage) for task in processors.tasks if task.in_danger
    )
    if sum(usage for *_, usage in urgent) < processors.count:
        return Seconds(0.0)
    free = [0.0] * processors.count
    for _, _, left_s, usage in urgent:
        needed = min(len(free), max(1, math.ceil(usage)))
        end_s = free[needed - 1] + left_s
        free = sorted((*free[needed:], *([end_s] * needed)))
    return Seconds(free[0] / fraction)


def in_progress(tasks: Iterable[Task], gpu_type: str) -> list[InProgress]:
    """Tasks of one kind of processor as they stand in a request; `gpu_type` empty: the CPU."""
    return [
        InProgress(task.name, task.due_at, Seconds(task.remaining_s), task.ncpus, gpu_type, task.gpu_count)
        for task in tasks
    ]


def work_of_others(processors: Processors, buffer: Buffer, now: Instant) -> tuple[InProgress, ...]:
    """Other projects' share of the buffer: a job for each processor they have, all of the same length.

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
