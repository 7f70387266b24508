"""An event loop on virtual time that draws which ready callback runs next, and can stop a process dead.

Satisfies as much of asyncio's loop as the services use: tasks, futures, time-outs. There is no I/O and there are no
threads; time passes when nothing is ready, to the next instant somebody waits for.
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

PROCESS: ContextVar[int] = ContextVar("PROCESS", default=0)  # whose callback runs: 0 is nobody's
MOST_CALLBACKS = 5_000_000  # of a run: more can only be an endless loop


class SeededLoop(asyncio.AbstractEventLoop):
    """Any ready callback may be the next. `kill` ends a process as SIGKILL does: nothing of it ever runs again."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serial = 0
        self._now_s = 0.0
        self._dead: set[int] = set()
        self._tasks: dict[int, list[tuple[asyncio.Task[Any], Context]]] = {}  # of each process that lives
        self._running = False
        self._closed = False
        self.callbacks = 0
        self.errors: list[str] = []  # of tasks nobody waited for

    # ------------------------------------------------------------ what runs

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it to its end; whatever else is under way is left as it is."""
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
            assert self._timers, "everybody waits for ever"
            self._turn()
        ready = self._ready
        if len(ready) > 1:
            place = int(self._draw.random() * len(ready))
            ready[place], ready[-1] = ready[-1], ready[place]
        handle = ready.pop()
        if handle.cancelled() or self._is_dead(handle):
            return
        self.callbacks += 1
        assert self.callbacks < MOST_CALLBACKS, "the run has no end"
        handle._run()

    def _turn(self) -> None:
        """Time passes until the next timers, which are then ready together."""
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            _, _, handle = heappop(self._timers)
            if not handle.cancelled() and not self._is_dead(handle):
                self._ready.append(handle)

    def kill(self, process: int) -> None:
        """What it was in the middle of in the store is undone now, as the database does when a connection is gone."""
        self._dead.add(process)
        for task, context in self._tasks.pop(process, ()):
            if not task.done():
                context.run(_end, task.get_coro())

    def _is_dead(self, handle: asyncio.Handle) -> bool:
        # There is no other way to know whose it is.
        return bool(self._dead) and handle._context.get(PROCESS, 0) in self._dead  # type: ignore[attr-defined]

    def start(self, process: int, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """A task of a process, and everything that comes of it."""
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
        """Cancelled timers leave when their instant comes."""

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
        """What a thread would do is done at once."""
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
    """Leave a coroutine where it stands; whatever it would wait for on its way out does not happen."""
    with suppress(RuntimeError):
        work.close()
