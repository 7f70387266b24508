"""Follows the rounds of duties: until when each is to end or to advance, and which of its calls still run in threads.

A round that is cancelled leaves a call in a thread behind if that waits for a file server that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from domain.progress import note_progress
from domain.units import Seconds

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
