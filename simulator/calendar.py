"""What happens next? Events by instant, and in the order in which they were entered when that is the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from heapq import heappop, heappush

from domain.units import Instant

Event = Callable[[], Awaitable[None]]


class Calendar:
    """A heap of (instant, serial number): the serial makes ties repeatable."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Event]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, at: Instant, event: Event) -> None:
        self._serial += 1
        heappush(self._heap, (at, self._serial, event))

    def next_at(self) -> Instant:
        """When the next event is; there must be one."""
        return self._heap[0][0]

    def take(self) -> tuple[Instant, Event]:
        """The next event, which is no longer in the calendar."""
        at, _, event = heappop(self._heap)
        return at, event
