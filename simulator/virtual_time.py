"""Provides virtual time: a clock that only the simulation advances, an event calendar, and a loop without threads.

Work that a service hands to a thread runs immediately on that loop, so that runs are repeatable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from heapq import heappop, heappush
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from domain.units import Instant, Seconds


class VirtualClock:
    """Satisfies domain.clock.Clock. Nothing takes time. Sleeping is an error: nothing would end it."""

    def __init__(self, now: Instant) -> None:
        self._started_at = now
        self._now = now

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> Seconds:
        return Seconds(self._now - self._started_at)

    async def sleep(self, duration_s: float) -> NoReturn:
        raise RuntimeError(f"a simulated service sleeps for {duration_s:g} s, but the calendar must schedule it")

    def turn_to(self, at: Instant) -> None:
        """Advance to `at`. The clock never moves back."""
        assert at >= self._now, (at, self._now)
        self._now = at


Event = Callable[[], Awaitable[None]]


class Calendar:
    """A heap of events by (instant, serial number). The serial number makes ties repeatable."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Event]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, at: Instant, event: Event) -> None:
        self._serial += 1
        heappush(self._heap, (at, self._serial, event))

    def next_at(self) -> Instant:
        """Return the time of the next event. The calendar must not be empty."""
        return self._heap[0][0]

    def take(self) -> tuple[Instant, Event]:
        """Remove and return the next event."""
        at, _, event = heappop(self._heap)
        return at, event


Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class ThreadlessLoop(asyncio.SelectorEventLoop):
    """Runs tasks in order of creation. `asyncio.to_thread` calls its function directly."""

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Arguments]], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        assert executor is None, "a simulation has no threads"
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_without_threads(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine to its end."""
    with asyncio.Runner(loop_factory=ThreadlessLoop) as runner:
        return runner.run(work)
