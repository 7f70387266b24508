"""An event loop that a target keeps for the life of the process."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class AtOnce(ThreadPoolExecutor):
    """Runs an executor's functions at once: waking a thread takes longer than most inputs."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # Any: as in the base class
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


def lasting_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that is closed at exit."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(AtOnce())
    atexit.register(loop.close)
    return loop
