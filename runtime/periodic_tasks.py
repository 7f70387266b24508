"""Periodic tasks run repeatedly and survive failing rounds: once per cluster, per directory, or in every process.

A round has a time limit and must report progress. A cancelled round may leave behind a thread that waits for an
unresponsive file server. Each task's deadline is in the heartbeat of the process that holds its lock, so that all
workers see which tasks are overdue in the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

import structlog

from domain.clock import Clock
from domain.errors import MusterError, UnavailableError
from domain.progress import PROGRESS, note_progress
from domain.units import DAY_S, HOUR_S, Instant, Seconds, later
from store.process_reports import PostgresProcessReports

GRACE_S = Seconds(30.0)  # a cancelled round that has not ended after this time hangs

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(eq=False, slots=True)
class Round:
    """One round of a periodic task. It must end or report progress before `until_s` (monotonic)."""

    until_s: Seconds
    over: bool = False
    calls: set[Future[Any]] = field(default_factory=set)

    def is_left(self) -> bool:
        """Return whether the round, or one of its threads, is still running."""
        return not self.over or bool(self.calls)

    def hangs(self, now_s: Seconds) -> bool:
        """Return whether it is still running 30 s after `until_s`."""
        return self.is_left() and now_s > self.until_s + GRACE_S


ROUND: ContextVar[Round | None] = ContextVar("ROUND", default=None)


class RoundThreads(ThreadPoolExecutor):
    """Threads whose calls are recorded in the round that made them. Each call counts as progress."""

    def submit(
        self, call: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        future = super().submit(call, *args, **kwargs)
        note_progress()
        made_by = ROUND.get()
        if made_by is not None:
            made_by.calls.add(future)
            future.add_done_callback(made_by.calls.discard)
        return future


STAND_BY_S = Seconds(5.0)
LOOK_S = Seconds(5.0)  # how soon a shortened interval is noticed
ROUND_S = Seconds(45.0)  # time limit for a round: with STAND_BY_S, another process takes over within a minute
SILENCE_S = Seconds(900.0)  # maximum without progress; a single statement or call over a large project takes minutes
MOST_ROUND_S = Seconds(6 * HOUR_S)  # as long as rounds exceed the limit, it is doubled up to this
GIVEN_UP_S = Seconds(3 * STAND_BY_S)  # so that another process gets the lock
MOST_TOLD = 500  # maximum number of characters kept of a failure

log = structlog.get_logger()


class OverrunError(MusterError):
    """A round exceeded its time limit, or reported no progress for too long."""


class TaskLocks(Protocol):
    async def mine(self, duty: str) -> bool: ...

    async def give_up(self, duty: str) -> None:
        """Release the lock, so that another process runs the task."""
        ...

    def fence(self, duty: str) -> AbstractContextManager[None]:
        """Within the block, transactions raise UnavailableError once the task's lock is lost."""
        ...


class PeriodicTask:
    """Runs `run_once` every `interval_s()` seconds while this process holds the task's lock (its name, or `lock`).

    If a report has `more` set, work is left and the next round follows immediately. An exception in a round is logged
    and counted in `failures`, and the task continues. A round that exceeds its limit is cancelled and the lock is
    released; the next limit is doubled, so that a long round eventually succeeds. The same applies to a round that
    reports no progress (domain/progress.py) for `silence_s`, because one of its calls hangs. When the lock is lost or
    released, `on_lost` is called to end work that the rounds left running.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Awaitable[object]],
        *,
        locks: TaskLocks,
        clock: Clock,
        interval_s: Callable[[], float],
        lock: str = "",
        limit_s: float = ROUND_S,
        silence_s: float = SILENCE_S,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.failures = 0
        self.overruns = 0  # number of failures caused by the time limit
        self.runs = 0
        self.ran_at: Instant | None = None  # end and duration of the last successful round
        self.took_s = Seconds(0.0)
        self.is_mine = False  # whether this process held the lock at the last check
        self.failed_at: Instant | None = None
        self.failure = ""  # the exception of the last failed round
        self.deadline_at: Instant | None = None  # for the next success; kept when the lock is lost
        self._run_once = run_once
        self._locks = locks
        self._lock = lock or name
        self._clock = clock
        self._interval_s = interval_s
        self._on_lost = on_lost
        self._may_have_left_work = False
        self._limit_s = limit_s
        self._silence_s = silence_s
        self._longer = 1  # factor of the limit
        self._rounds: list[Round] = []

    @property
    def limit_s(self) -> Seconds:
        """Return the time limit of the next round."""
        return Seconds(max(self._limit_s, min(self._limit_s * self._longer, MOST_ROUND_S)))

    def hangs(self) -> bool:
        """Return whether a cancelled round has not ended."""
        now_s = self._clock.monotonic()
        return any(one.hangs(now_s) for one in self._rounds)

    async def step(self) -> float:
        """Run one round and return the seconds until the next one."""
        try:
            return await self._step()
        finally:
            if self._may_have_left_work and not self.is_mine:
                self._may_have_left_work = False
                self._on_lost()

    async def _step(self) -> float:
        was_mine, self.is_mine = self.is_mine, False
        try:
            self.is_mine = await self._locks.mine(self._lock)
            if not self.is_mine:
                return STAND_BY_S
            self._may_have_left_work = True
            if not was_mine:
                self.deadline_at = later(self._clock.now(), self.limit_s)
            began_s = self._clock.monotonic()
            report = await self._round(began_s)
        except UnavailableError as error:
            log.warning("periodic task failed", duty=self.name, why=str(error))
            return STAND_BY_S
        except OverrunError as error:
            self.overruns += 1
            self._note_failure(error)
            log.error("periodic task exceeded its time limit, releasing its lock", duty=self.name, why=str(error))
            return await self._give_up()
        except Exception as error:
            self._note_failure(error)
            log.exception("periodic task failed", duty=self.name, failures=self.failures)
            return STAND_BY_S  # other tasks continue
        self._longer = 1
        self.runs += 1
        self.ran_at, self.took_s = self._clock.now(), Seconds(self._clock.monotonic() - began_s)
        log.debug("periodic task done", duty=self.name, report=report)
        pause_s = 0.0 if getattr(report, "more", False) else self._interval_s()
        self.deadline_at = later(self.ran_at, pause_s + self.limit_s)
        return pause_s

    async def run(self) -> None:
        """Run rounds until cancelled. If the interval is shortened during a pause, the pause is shortened too."""
        while True:
            rounds, left_s = self.runs, await self.step()
            slept_s = 0.0
            while self.runs > rounds and left_s > LOOK_S:
                await self._clock.sleep(LOOK_S)
                slept_s += LOOK_S
                left_s = min(left_s - LOOK_S, max(0.0, self._interval_s() - slept_s))
            await self._clock.sleep(left_s)

    async def _round(self, began_s: Seconds) -> object:
        """Return the round's report. Raises OverrunError."""
        limit_s, silence_s = self.limit_s, min(self.limit_s, self._silence_s * self._longer)
        this = Round(Seconds(began_s + silence_s))
        self._rounds = [one for one in self._rounds if one.is_left()] + [this]
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        limit = asyncio.timeout_at(end_s - limit_s + silence_s)

        def note_progress() -> None:
            if not this.over and not limit.expired():
                limit.reschedule(min(end_s, loop.time() + silence_s))
                this.until_s = Seconds(min(began_s + limit_s, self._clock.monotonic() + silence_s))

        tokens = ROUND.set(this), PROGRESS.set(note_progress)
        try:
            async with limit:
                with self._locks.fence(self._lock):
                    return await self._run_once()
        except TimeoutError:
            if limit.expired():
                self._longer *= 2
                if (limit.when() or end_s) < end_s:
                    raise OverrunError(f"a round made no progress for {silence_s:g} s") from None
                raise OverrunError(f"a round took longer than {limit_s:g} s") from None
            raise
        finally:
            this.over = True
            ROUND.reset(tokens[0])
            PROGRESS.reset(tokens[1])

    async def _give_up(self) -> float:
        self.is_mine = False
        try:
            await self._locks.give_up(self._lock)
        except UnavailableError as error:
            log.warning("lock of periodic task not released: it is lost", duty=self.name, why=str(error))
        return GIVEN_UP_S

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        self.failed_at, self.failure = self._clock.now(), f"{type(error).__name__}: {error}"[:MOST_TOLD]


READ_EVERY_S = Seconds(10.0)


class DutyWatch:
    """Returns each periodic task's deadline. While the database is unavailable, it uses the last values read."""

    def __init__(self, deadlines: PostgresProcessReports, clock: Clock) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._known: Mapping[str, Instant] = {}

    def late_s(self) -> dict[str, Seconds]:
        """Return by how many seconds each task is overdue; 0 if it is on time."""
        now = self._clock.now()
        return {duty: Seconds(max(0.0, now - at)) for duty, at in sorted(self._known.items())}

    async def read_once(self) -> None:
        """Read the deadlines. Raises UnavailableError."""
        self._known = await self._deadlines.duty_deadlines(later(self._clock.now(), -DAY_S))

    async def run(self) -> None:
        while True:
            try:
                await self.read_once()
            except UnavailableError as error:
                log.warning("deadlines of periodic tasks not read", why=str(error))
            await self._clock.sleep(READ_EVERY_S)
