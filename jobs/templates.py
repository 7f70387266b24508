"""Tells which jobs of a batch share a command line or input files, so that those are stored once. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from jobs.requirements import InputSpec, JobSpec

LEAST_CHARS = 64  # of a command line that is shared: a shorter one takes as much with its job
MOST_REMEMBERED = 1000  # of texts that came once or more, the latest

Shared = TypeVar("Shared")
_Key = tuple[str, tuple[InputSpec, ...]]


class SharedTexts(Generic[Shared]):
    """Goes through a batch's jobs. `make` makes what jobs share: for a table of several jobs at once, and for a text
    that comes again in another table or row, from the second time on."""

    def __init__(self, make: Callable[[JobSpec], Shared]) -> None:
        self._make = make
        self._seen: OrderedDict[_Key, Shared | None] = OrderedDict()

    def of(self, job: JobSpec) -> Shared | None:
        """What the job shares with others; None: its command line and inputs are stored with it."""
        if len(job.command_line) < LEAST_CHARS and not job.own_inputs:
            return None
        key = (job.command_line, job.own_inputs)
        came_before = key in self._seen
        shared = self._seen.get(key)
        if shared is None and (came_before or job.count > 1):
            shared = self._make(job)
        self._seen[key] = shared
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return shared
