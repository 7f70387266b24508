"""An event loop on virtual time that draws which ready callback runs next, and can kill a process.

Satisfies as much of asyncio's loop as the services use: tasks, futures, time-outs. It has no I/O and no threads; when
nothing is ready, time advances to the next timer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, TypeVar

Result = TypeVar("Result")

PROCESS: ContextVar[int] = ContextVar("PROCESS", default=0)  # process of the running callback; 0: none
MOST_CALLBACKS = 5_000_000  # callbacks per run: more can only be an endless loop


class SeededLoop(asyncio.AbstractEventLoop):
    """Runs ready callbacks in random order. `kill` ends a process as SIGKILL does: none of its callbacks runs again."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serial = 0
        self._now_s = 0.0
        self._dead: set[int] = set()
        self._tasks: dict[int, list[tuple[asyncio.Task[Any], Context]]] = {}  # by running process
        self._running = False
        self._closed = False
        self.callbacks = 0
        self.errors: list[str] = []  # of tasks without a waiter

    # ------------------------------------------------------------ what runs

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the coroutine to its end; leave other tasks as they are."""
        asyncio._set_running_loop(self)
        self._running = True
        try:
            task = self.create_task(work)
            while not task.done():
                self._step()
            return task.result()
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        while not self._ready:
            assert self._timers, "deadlock: no task is ready and no timer is set"
            self._turn()
        ready = self._ready
        if len(ready) > 1:
            place = int(self._draw.random() * len(ready))
            ready[place], ready[-1] = ready[-1], ready[place]
        handle = ready.pop()
        if handle.cancelled() or self._is_dead(handle):
            return
        self.callbacks += 1
        assert self.callbacks < MOST_CALLBACKS, "the run does not end"
        handle._run()

    def _turn(self) -> None:
        """Advance to the next timers, which become ready together."""
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            _, _, handle = heappop(self._timers)
            if not handle.cancelled() and not self._is_dead(handle):
                self._ready.append(handle)

    def kill(self, process: int) -> None:
        """Kill a process and undo its open store transactions, as the database does for a closed connection."""
        self._dead.add(process)
        for task, context in self._tasks.pop(process, ()):
            if not task.done():
                context.run(_end, task.get_coro())

    def _is_dead(self, handle: asyncio.Handle) -> bool:
        # Only the context shows its process.
        return bool(self._dead) and handle._context.get(PROCESS, 0) in self._dead  # type: ignore[attr-defined]

    def start(self, process: int, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start a task of a process, which owns everything the task starts."""
        context = copy_context()
        context.run(PROCESS.set, process)
        return self.create_task(work, context=context)

    # ------------------------------------------------------------ asyncio's loop

    def time(self) -> float:
        return self._now_s

    def call_soon(  # type: ignore[override]  # nothing of their types matters here
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._serial += 1
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, self._serial, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Ignore it: cancelled timers leave at their time."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Result], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Result]:
        context = context or copy_context()
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # a dead process ends nothing
        if process := context.get(PROCESS, 0):
            known = [one for one in self._tasks.get(process, ()) if not one[0].done()]
            self._tasks[process] = [*known, (task, context)]
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run a thread's function at once."""
        assert executor is None
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def get_debug(self) -> bool:
        return False

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.default_exception_handler(context)


def _end(work: Any) -> None:
    """Stop a coroutine where it is, without running what it would wait for on exit."""
    with suppress(RuntimeError):
        work.close()
