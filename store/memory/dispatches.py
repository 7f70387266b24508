"""Every dispatch of an app in the order of its instant, so that recent ones are sampled without a look at all."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from domain.units import InstanceId, Instant


class Dispatches:
    """Instants and instances, by instant.

    >>> sent = Dispatches()
    >>> for at, number in ((10.0, 1), (30.0, 2), (20.0, 3)):
    ...     sent.add(Instant(at), InstanceId(number))
    >>> sent.since(Instant(15.0)), list(sent.every(1, Instant(15.0))), list(sent.every(2, Instant(5.0)))
    (2, [(20.0, 3), (30.0, 2)], [(10.0, 1), (30.0, 2)])
    """

    def __init__(self) -> None:
        self._at = array("d")
        self._ids = array("q")

    def add(self, at: Instant, instance_id: InstanceId) -> None:
        """Nearly always the latest."""
        if not self._at or at >= self._at[-1]:
            self._at.append(at)
            self._ids.append(instance_id)
            return
        place = bisect_right(self._at, at)
        self._at.insert(place, at)
        self._ids.insert(place, instance_id)

    def since(self, at: Instant) -> int:
        """How many there were from `at` on."""
        return len(self._at) - bisect_left(self._at, at)

    def every(self, step: int, at: Instant) -> Iterator[tuple[float, int]]:
        """Each `step`-th of them from `at` on, the first one included."""
        first = bisect_left(self._at, at)
        return zip(self._at[first::step], self._ids[first::step], strict=True)
