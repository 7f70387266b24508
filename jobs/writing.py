"""Writes a round's changes in one call. If that fails, writes them singly, so that only failing changes are skipped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog

from domain.errors import UnavailableError
from domain.units import Instant, Seconds, later

REST_S = Seconds(60.0)  # back-off of a change that could not be written

Change = TypeVar("Change")
Key = TypeVar("Key")


class Resting(Generic[Key]):
    """Items in back-off after a failure. `what` is their kind, for the log."""

    def __init__(self, what: str, log: structlog.stdlib.BoundLogger) -> None:
        self._what = what
        self._log = log
        self._until: dict[Key, Instant] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, key: Key) -> bool:
        return key in self._until

    def wake(self, now: Instant) -> None:
        """Remove the items whose back-off has ended."""
        self._until = {key: until for key, until in self._until.items() if until > now}

    def add(self, key: Key, now: Instant, error: Exception) -> None:
        self._until[key] = later(now, REST_S)
        self._log.error(f"{self._what} skipped after an error", id=key, error=str(error), kind=type(error).__name__)


async def write_or_rest(
    changes: Sequence[Change],
    write: Callable[[Sequence[Change]], Awaitable[int]],
    *,
    key: Callable[[Change], Key],
    resting: Resting[Key],
    now: Instant,
) -> int:
    """Write changes and return how many `write` made. Each change that fails on its own is put in back-off.

    Raises UnavailableError if the store is unreachable, which is not the fault of a change.
    """
    try:
        return await write(changes) if changes else 0
    except UnavailableError:
        raise
    except Exception as error:
        if len(changes) == 1:
            resting.add(key(changes[0]), now, error)
            return 0
    made = 0
    for change in changes:
        made += await write_or_rest([change], write, key=key, resting=resting, now=now)
    return made
