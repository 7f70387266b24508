"""An event loop that makes one turn when it is told to, and knows when it has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that makes one turn at a time, and knows when nothing is left to do."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0
        self.turns = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(cast("Any", self._made))

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]  # nothing of their type matters here
        self._calls += 1
        return super().call_soon(callback, *args, context=context)

    def turn(self) -> bool:
        """Run what is ready now; whether that made anything else ready."""
        super().call_soon(self.stop)
        before = self._calls
        self.turns += 1
        self.run_forever()
        return self._calls > before

    def _made(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **named: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **named)
        self.tasks.append(task)
        return task
