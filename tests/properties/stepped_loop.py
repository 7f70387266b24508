"""An event loop that makes one turn at a time, and knows when it is idle.

Satisfies as much of asyncio's loop as groups use: tasks, futures, callbacks in order. It has no I/O and no timers: a
hundred thousand turns cost no more than their callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any


class SteppedLoop(asyncio.AbstractEventLoop):
    """An event loop that makes one turn at a time, and knows when nothing is left to do."""

    def __init__(self) -> None:
        self._ready: list[asyncio.Handle] = []
        self._closed = False
        self.turns = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.errors: list[str] = []  # of callbacks

    def turn(self) -> bool:
        """Run ready callbacks; return whether that made others ready."""
        ready, self._ready = self._ready, []
        self.turns += 1
        asyncio._set_running_loop(self)
        try:
            for handle in ready:
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)
        return bool(self._ready)

    # ------------------------------------------------------------ asyncio's loop

    def time(self) -> float:
        """Return the number of turns as seconds; there are no timers."""
        return float(self.turns)

    def call_soon(  # type: ignore[override]  # nothing of their types matters here
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")
