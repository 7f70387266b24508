"""Schedules a client's processors: round-robin while all deadlines can be met, otherwise earliest deadline first.

The stock client does the same (docs/protocol.md#behaviour). Under round-robin, this project gets its share of the
processors while other projects have work, and runs its jobs in order of arrival; on a shared processor a job runs at a
fraction of its speed. A job is in danger if, by the client's own estimates, it would then end less than `margin_s`
before its deadline. Jobs in danger start immediately on all processors, earliest deadline first; other jobs wait.

The real client checks every minute. The simulated client checks when a job arrives, ends or is dropped, and as soon as
a job could be in danger, at most every CHECK_AGAIN_S.
"""

from __future__ import annotations

import math
from array import array
from bisect import insort
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from domain.quick import quick_dataclass
from domain.units import Instant, Seconds
from simulator.availability import Availability

CHECK_AGAIN_S = 600.0
DONE_S = 1e-3  # less work than this counts as none: the resolution of instants is a quarter of a microsecond


@dataclass(slots=True, eq=False)
class Task:
    """A job on the client. Work is in seconds at full speed.

    `left_s` is the true work left until its end or its error, `done_s` the work done, `estimate_s` the client's
    estimate of the whole job and `true_s` its true length. `lost` tasks never run and never end.
    """

    name: str
    due_at: Instant
    left_s: float
    true_s: float
    estimate_s: float
    ncpus: float = 1.0
    gpu_count: float = 0.0
    version_num: int = 0
    plan_class: str = ""
    files: tuple[str, ...] = ()
    job: str = ""
    report_immediately: bool = False
    lost: bool = False
    fails: bool = False
    garbage: bool = False
    done_s: float = 0.0
    started: bool = False
    share: float = 0.0  # current speed as a fraction of full speed
    in_danger: bool = False
    was_in_danger: bool = False  # at some time while it was in danger

    @property
    def usage(self) -> float:
        """Return how many processors of its own type the task uses."""
        return self.gpu_count or self.ncpus

    @property
    def remaining_s(self) -> float:
        """Return the client's estimate of the work left, which shifts from the initial estimate to one based on
        measured progress.

        >>> Task("a_1", Instant(0.0), left_s=50.0, true_s=100.0, estimate_s=200.0, done_s=50.0).remaining_s
        75.0
        """
        fraction = self.done_s / self.true_s
        if fraction >= 1.0:
            return 0.0
        return (1.0 - fraction) * (fraction * self.true_s + (1.0 - fraction) * self.estimate_s)


@quick_dataclass(frozen=True, slots=True)
class Ended:
    """A finished task and when it ended. `late`: its deadline passed before it started, so it was dropped."""

    task: Task
    at: Instant
    late: bool = False


@dataclass(slots=True)
class Processors:
    """A host's processors of one type, and this project's tasks for them.

    This project gets `share` of them while tasks run in turn; the rest belongs to other projects. `preempted_s` is the
    total of the processor seconds that other jobs lost to tasks in danger; `run` and `out_of_turn` count tasks.
    """

    count: int
    share: float
    margin_s: Seconds
    availability: Availability
    at: Instant
    fraction: float = 1.0  # the on fraction measured by the client
    tasks: list[Task] = field(default_factory=list)
    run: int = 0
    out_of_turn: int = 0
    preempted_s: float = 0.0
    next_at: float = math.inf  # when a task next ends or is dropped, or a check is due, if no task is added
    _done_at: float = math.inf
    _worked_s: float = 0.0  # on time before `at`, in seconds
    _taking: float = 0.0  # processors taken from other jobs
    _using: float = 0.0  # processors this project's tasks use, at most its share
    _used_s: float = 0.0  # integral of `_used` before `_worked_s`, in processor seconds
    _use: tuple[array[float], array[float]] = field(default_factory=lambda: (array("d", [0.0]), array("d", [0.0])))

    def add(self, tasks: list[Task], now: Instant) -> None:
        """Add new tasks; call `advance` with `now` first."""
        self.tasks.extend(tasks)
        self.plan(now)

    def remove(self, task: Task, now: Instant) -> None:
        """Remove a task the client gives up; call `advance` with `now` first."""
        self.tasks.remove(task)
        self.plan(now)

    def advance(self, now: Instant) -> list[Ended]:
        """Compute until `now`; return the tasks that ended, in order."""
        ended: list[Ended] = []
        while self.next_at <= now:
            at = Instant(self.next_at)
            self._compute(at)
            is_done = at >= self._done_at
            over = [
                task
                for task in self.tasks
                if not task.lost and ((is_done and task.left_s <= DONE_S) or (not task.started and task.due_at <= at))
            ]
            if over:
                ended.extend([Ended(task, at, late=not task.started) for task in over])
                self.tasks = [task for task in self.tasks if task not in over]
            self.plan(at)
        if now > self.at:
            self._compute(now)
        return ended

    def plan(self, now: Instant) -> None:
        """Decide which tasks run from `now`, and when the next event occurs."""
        self.at = now
        if not self.tasks:
            self._taking, self.next_at, self._done_at = 0.0, math.inf, math.inf
            self._uses(0.0)
            return
        self._worked_s = self.availability.worked_s(now)
        runnable = [task for task in self.tasks if not task.lost]
        look_again_at = self._find_danger(runnable, now)
        self._share_out(runnable)
        self._done_at = self._first_end(runnable)
        late_at = min([task.due_at for task in runnable if not task.started and task.due_at > now], default=math.inf)
        self.next_at = min(self._done_at, late_at, look_again_at)

    def _find_danger(self, runnable: list[Task], now: Instant) -> float:
        """Mark the tasks that would be late if all ran in turn. Return until when no further task can be in danger."""
        left = [(task.remaining_s, task.gpu_count or task.ncpus) for task in runnable]
        capacity, fraction = self.count * self.share, max(0.01, self.fraction)
        last_s = (sum([s * usage for s, usage in left]) / capacity + max(left, default=(0.0, 0.0))[0]) / fraction
        earliest_at = min([task.due_at for task in runnable], default=math.inf)
        spare_s = earliest_at - self.margin_s - now - 2.0 * last_s  # list scheduling is never slower than this
        if spare_s >= 0.0:
            for task in runnable:
                task.in_danger = False
            return now + max(CHECK_AGAIN_S, spare_s)
        spare_s = math.inf
        for task, end_s in zip(runnable, in_turn_s(left, capacity), strict=True):
            slack_s = task.due_at - self.margin_s - now - end_s / fraction
            task.in_danger = slack_s < 0.0
            spare_s = spare_s if task.in_danger else min(spare_s, slack_s)
        return now + max(CHECK_AGAIN_S, spare_s)

    def _share_out(self, runnable: list[Task]) -> None:
        """Set task speeds: first tasks in danger, on all processors, then other tasks within this project's share."""
        endangered = [task for task in runnable if task.in_danger]
        capacity = self.count * self.share
        if not endangered:
            self._uses(_hand_out(runnable, capacity))
            self._taking = 0.0
        else:
            _hand_out(runnable, capacity)
            in_turn = [task.share * task.usage for task in runnable]
            endangered.sort(key=attrgetter("due_at", "name"))
            used = _hand_out(endangered, float(self.count), whole=True)
            used += _hand_out([task for task in runnable if not task.in_danger], max(0.0, capacity - used))
            self._uses(min(used, capacity))
            self._taking = _kept_from_others(runnable, in_turn)
        for task in runnable:
            if task.share <= 0.0:
                continue
            if not task.started:
                self.run += 1
                task.started = True
            if task.in_danger and not task.was_in_danger:
                self.out_of_turn += 1
                task.was_in_danger = True

    def _uses(self, processors: float) -> None:
        """Record that this project now uses this many processors of its share."""
        if processors != self._using:
            worked_s, used_s = self._use
            worked_s.append(self._worked_s)
            used_s.append(self._used_s)
            self._using = processors

    def used_s(self, worked_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the processor seconds of its share that this project used, by on time. Call `advance` that far first.

        Work of tasks in danger beyond the share does not count.
        """
        changed_s, used_s = self._use
        return np.asarray(np.interp(worked_s, np.append(changed_s, self._worked_s), np.append(used_s, self._used_s)))

    def _first_end(self, runnable: list[Task]) -> float:
        ahead_s = min([task.left_s / task.share for task in runnable if task.share > 0.0], default=math.inf)
        return self.availability.when(self._worked_s + ahead_s) if ahead_s < math.inf else math.inf

    def _compute(self, until: Instant) -> None:
        worked_s = self.availability.worked_s(until)
        passed_s = worked_s - self._worked_s
        self.at, self._worked_s = until, worked_s
        if passed_s <= 0.0:
            return
        self.preempted_s += self._taking * passed_s
        self._used_s += self._using * passed_s
        for task in self.tasks:
            if task.share > 0.0:
                done_s = task.share * passed_s
                task.done_s += done_s
                task.left_s -= done_s


def _hand_out(tasks: list[Task], capacity: float, *, whole: bool = False) -> float:
    """Give up to `capacity` processors to tasks in order, each at most its remaining speed. Return the number given.

    `whole`: a task gets either all the processors it uses or none, except for the first task.
    """
    left = capacity
    for task in tasks:
        if left <= 1e-9:
            task.share = 0.0
            continue
        usage = task.usage
        share = min(1.0, left / usage)
        if whole and share < 1.0 and left < capacity:
            share = 0.0
        task.share = share
        left -= share * usage
    return capacity - left


def _kept_from_others(runnable: list[Task], in_turn: list[float]) -> float:
    """Return how many processors the other jobs, of this and other projects, lose to jobs in danger."""
    now = [task.share * task.usage for task in runnable]
    own = sum(
        max(0.0, turn - have) for task, turn, have in zip(runnable, in_turn, now, strict=True) if not task.in_danger
    )
    return own + max(0.0, sum(now) - sum(in_turn))


def in_turn_s(left: list[tuple[float, float]], capacity: float) -> list[float]:
    """Return when each task (seconds left, processors used) would end if all ran in order on `capacity` processors.

    Each whole processor takes the next task when it becomes free; a fractional remainder is one slower processor.

    >>> in_turn_s([(10.0, 1.0), (10.0, 1.0), (10.0, 1.0)], 2.0), in_turn_s([(10.0, 1.0), (10.0, 1.0)], 0.5)
    ([10.0, 10.0, 20.0], [20.0, 40.0])
    >>> in_turn_s([(10.0, 1.0), (10.0, 1.0)], 1.5), in_turn_s([(10.0, 4.0), (10.0, 1.0)], 4.0)
    ([10.0, 20.0], [10.0, 20.0])
    """
    whole = int(capacity + 1e-9)
    free = [0.0] * whole
    slow, slow_free_s = capacity - whole, 0.0
    ends = []
    for left_s, usage in left:
        needed = max(1, math.ceil(usage - 1e-9))
        if needed > whole:  # wider than the share: runs on all processors after every earlier task
            begin_s = max([slow_free_s, *free])
            end_s = begin_s + left_s * usage / capacity
            free, slow_free_s = [end_s] * whole, end_s
        elif slow > 1e-9 and usage <= 1.0 and slow_free_s + left_s / slow < free[0] + left_s:
            end_s = slow_free_s = slow_free_s + left_s / slow
        else:
            end_s = free[needed - 1] + left_s
            del free[:needed]
            for _ in range(needed):
                insort(free, end_s)
        ends.append(end_s)
    return ends
