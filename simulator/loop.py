"""An event loop without threads: what a service does in one is done at once, so that a run repeats exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class ThreadlessLoop(asyncio.SelectorEventLoop):
    """Tasks run in the order in which they were made; `asyncio.to_thread` calls its function and returns."""

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Arguments]], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        assert executor is None, "the simulation has no threads"
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_without_threads(work: Coroutine[Any, Any, Result]) -> Result:
    """Run it to its end."""
    with asyncio.Runner(loop_factory=ThreadlessLoop) as runner:
        return runner.run(work)
