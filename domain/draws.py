"""Which of many alike are drawn, the same for everybody who asks? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from domain.jobs import Ready
from domain.units import InstanceId

DRAWS_KEPT = 4096  # an instance that comes and goes is drawn for again, and so is whoever asks


@lru_cache(maxsize=DRAWS_KEPT)
def draw(instance_id: InstanceId) -> float:
    """A number from 0 to below 1 that belongs to an instance: equal for all requests and workers.

    The id's bits are mixed by two rounds of multiply and xor-shift, so that the neighbours of one batch
    are spread evenly.

    >>> sum(draw(InstanceId(i)) < 0.05 for i in range(100_000)) / 100_000
    0.05065
    """
    mixed = (instance_id * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 32
    return (mixed >> 11) / float(1 << 53)


def first_drawn(slots: Sequence[Ready], at: int, end: int, fraction: float) -> int | None:
    """The place of the first slot from `at` on and before `end` whose draw is below `fraction`.

    >>> slots = [Ready(i, i, 1, 1) for i in range(1, 101)]
    >>> first_drawn(slots, 0, 100, 0.05), first_drawn(slots, 0, 8, 0.05)
    (43, None)
    """
    return next((place for place in range(at, min(end, len(slots))) if draw(slots[place].instance_id) < fraction), None)
