"""Which of many alike are drawn, the same for everybody who asks? Pure."""

from __future__ import annotations

from functools import lru_cache

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
