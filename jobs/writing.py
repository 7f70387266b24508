"""Writes a round's changes together; when that fails, one by one, so that only what is wrong is left out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog

from domain.errors import UnavailableError
from domain.units import Instant, Seconds, later

REST_S = Seconds(60.0)  # what could not be written is left alone this long

Change = TypeVar("Change")
Key = TypeVar("Key")


class Resting(Generic[Key]):
    """Things that went wrong and are left alone for a while. `what` names one of them in the log."""

    def __init__(self, what: str, log: structlog.stdlib.BoundLogger) -> None:
        self._what = what
        self._log = log
        self._until: dict[Key, Instant] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, key: Key) -> bool:
        return key in self._until

    def wake(self, now: Instant) -> None:
        """Let go of those that have rested."""
        self._until = {key: until for key, until in self._until.items() if until > now}

    def add(self, key: Key, now: Instant, error: Exception) -> None:
        self._until[key] = later(now, REST_S)
        self._log.error(f"{self._what} left alone", id=key, error=str(error), kind=type(error).__name__)


async def write_or_rest(
    changes: Sequence[Change],
    write: Callable[[Sequence[Change]], Awaitable[int]],
    *,
    key: Callable[[Change], Key],
    resting: Resting[Key],
    now: Instant,
) -> int:
    """How many of the changes `write` really made; what alone it fails with rests.

    Raises UnavailableError: a store that is away is no fault of the changes.
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
