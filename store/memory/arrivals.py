"""How many new hosts volunteers and addresses brought today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class MemoryArrivals:
    """Satisfies runtime.rate_limits's Arrivals."""

    def __init__(self) -> None:
        self._hosts: Counter[tuple[int, str]] = Counter()

    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        for who in sorted(most):
            if self._hosts[day, who] >= most[who]:
                return who
        for key in [one for one in self._hosts if one[0] < day]:
            del self._hosts[key]
        self._hosts.update((day, who) for who in most)
        return None
