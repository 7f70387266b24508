"""An event loop that a target keeps for as long as the process lives."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class AtOnce(ThreadPoolExecutor):
    """Does what is meant for a thread where it is asked to: waking a thread takes longer than most inputs do."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # Any: as its base says
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


def lasting_loop() -> asyncio.AbstractEventLoop:
    """Closed at the end."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(AtOnce())
    atexit.register(loop.close)
    return loop
