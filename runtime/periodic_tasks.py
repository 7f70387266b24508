"""Periodic tasks: done once per cluster, or once per folder, again and again, whatever a single round runs into.

A round has a time limit and must report progress; one that is cancelled may leave a call in a thread behind, if that
waits for a file server that does not answer. Each task's deadline is in the heartbeat of the process that holds its
lock, so that every worker sees which tasks no process of the cluster does in time.
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

GRACE_S = Seconds(30.0)  # a cancelled round that is not over after this hangs

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(eq=False, slots=True)
class Round:
    """One round of a duty; `until_s`, on the monotonic clock: by when it is to end, or to report progress."""

    until_s: Seconds
    over: bool = False
    calls: set[Future[Any]] = field(default_factory=set)

    def is_left(self) -> bool:
        """Whether it, or a call of it in a thread, still runs."""
        return not self.over or bool(self.calls)

    def hangs(self, now_s: Seconds) -> bool:
        """Whether it still runs 30 s after `until_s`."""
        return self.is_left() and now_s > self.until_s + GRACE_S


ROUND: ContextVar[Round | None] = ContextVar("ROUND", default=None)


class RoundThreads(ThreadPoolExecutor):
    """Threads that note their calls with the round that made them. Each call is progress of the round."""

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
ROUND_S = Seconds(45.0)  # time limit of a round: with STAND_BY_S, another process takes over within a minute
SILENCE_S = Seconds(900.0)  # without progress of a round; a single statement or call over a large project takes minutes
MOST_ROUND_S = Seconds(6 * HOUR_S)  # the limit doubles up to this while rounds exceed it
GIVEN_UP_S = Seconds(3 * STAND_BY_S)  # so that another process gets the lock
MOST_TOLD = 500  # characters of a failure

log = structlog.get_logger()


class OverrunError(MusterError):
    """A round took longer than its time limit, or reported no progress for too long."""


class TaskLocks(Protocol):
    async def mine(self, duty: str) -> bool: ...

    async def give_up(self, duty: str) -> None:
        """Let another process do the duty."""
        ...

    def fence(self, duty: str) -> AbstractContextManager[None]:
        """Inside, no transaction begins once the duty's lock is lost: UnavailableError."""
        ...


class PeriodicTask:
    """Runs `run_once` every `interval_s()` seconds while this process holds the duty's lock: its name, or `lock`.

    A report with `more` set says that work is waiting: the next round follows at once. What a round
    raises is logged and counted in `failures`, and the duty goes on. A round that takes longer than its limit is
    cancelled and the lock given up; the next limit is twice as long, so that a long round succeeds in the end. So is a
    round that reports no progress (domain/progress.py) for `silence_s`: a single call of it hangs.
    `on_lost` is called when the lock is lost or given up: it ends work that the rounds left running.
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
        self.overruns = 0  # failures that were rounds over their time limit
        self.runs = 0
        self.ran_at: Instant | None = None  # the end of the last round that went well, and what it took
        self.took_s = Seconds(0.0)
        self.is_mine = False  # whether this process held the lock when it looked last
        self.failed_at: Instant | None = None
        self.failure = ""  # what the last round that failed raised
        self.deadline_at: Instant | None = None  # by when the next round is to succeed; stays when the duty is lost
        self._run_once = run_once
        self._locks = locks
        self._lock = lock or name
        self._clock = clock
        self._interval_s = interval_s
        self._on_lost = on_lost
        self._may_have_left_work = False
        self._limit_s = limit_s
        self._silence_s = silence_s
        self._longer = 1  # the limit is so many times as long
        self._rounds: list[Round] = []

    @property
    def limit_s(self) -> Seconds:
        """The time limit of the next round."""
        return Seconds(max(self._limit_s, min(self._limit_s * self._longer, MOST_ROUND_S)))

    def hangs(self) -> bool:
        """Whether a round did not end in spite of being cancelled."""
        now_s = self._clock.monotonic()
        return any(one.hangs(now_s) for one in self._rounds)

    async def step(self) -> float:
        """One round; returns the seconds until the next."""
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
            log.warning("duty not done", duty=self.name, why=str(error))
            return STAND_BY_S
        except OverrunError as error:
            self.overruns += 1
            self._note_failure(error)
            log.error("duty exceeded its time limit, giving it up", duty=self.name, why=str(error))
            return await self._give_up()
        except Exception as error:
            self._note_failure(error)
            log.exception("duty failed", duty=self.name, failures=self.failures)
            return STAND_BY_S  # the other duties go on
        self._longer = 1
        self.runs += 1
        self.ran_at, self.took_s = self._clock.now(), Seconds(self._clock.monotonic() - began_s)
        log.debug("duty done", duty=self.name, report=report)
        pause_s = 0.0 if getattr(report, "more", False) else self._interval_s()
        self.deadline_at = later(self.ran_at, pause_s + self.limit_s)
        return pause_s

    async def run(self) -> None:
        while True:
            await self._clock.sleep(await self.step())

    async def _round(self, began_s: Seconds) -> object:
        """What the round reports. Raises OverrunError."""
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
            log.warning("duty not given up, its lock is lost", duty=self.name, why=str(error))
        return GIVEN_UP_S

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        self.failed_at, self.failure = self._clock.now(), f"{type(error).__name__}: {error}"[:MOST_TOLD]


READ_EVERY_S = Seconds(10.0)


class Deadlines(Protocol):
    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """The last deadline of each duty, of processes that reported since."""
        ...


class DutyWatch:
    """Knows by when each duty should have been done; while the database is away, by what was read last."""

    def __init__(self, deadlines: Deadlines, clock: Clock) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._known: Mapping[str, Instant] = {}

    def late_s(self) -> dict[str, Seconds]:
        """How long ago each duty should have been done; 0 for a duty that is in time."""
        now = self._clock.now()
        return {duty: Seconds(max(0.0, now - at)) for duty, at in sorted(self._known.items())}

    async def read_once(self) -> None:
        """Raises UnavailableError."""
        self._known = await self._deadlines.duty_deadlines(later(self._clock.now(), -DAY_S))

    async def run(self) -> None:
        while True:
            try:
                await self.read_once()
            except UnavailableError as error:
                log.warning("deadlines of duties not read", why=str(error))
            await self._clock.sleep(READ_EVERY_S)
