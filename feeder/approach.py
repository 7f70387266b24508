"""How far does one refill go towards the plan? So far that requests are not kept waiting for long. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from feeder.partitions import Part

MOST_CHANGED = 1000  # slots that one refill places or drops: no request is served meanwhile


def approached(planned: Mapping[Part, int], held: Mapping[Part, int], *, free: int) -> dict[Part, int]:
    """How many slots the parts should have after this refill, where so many slots are free.

    Each part gets its share of what may be added, rounded up, while there is any; parts over the plan go down to it.

    >>> approached({(1, True): 30, (1, False): 4000, (2, False): 970}, {(2, False): 3000}, free=2000)
    {(1, True): 8, (1, False): 992, (2, False): 970}
    """
    lacks = {part: max(0, count - held.get(part, 0)) for part, count in planned.items()}
    total, left = sum(lacks.values()), most_added(free)
    if total <= left:
        return dict(planned)
    share = left / total
    target = {}
    for part, lack in lacks.items():
        added = min(math.ceil(lack * share), left)
        left -= added
        target[part] = held.get(part, 0) + added if lack else planned[part]
    return target


def most_added(free: int) -> int:
    """How many slots may be added where so many are free: for each above those another one is dropped.

    >>> [most_added(free) for free in (5000, 400, 0)]
    [1000, 700, 500]
    """
    return (MOST_CHANGED + min(max(0, free), MOST_CHANGED)) // 2
