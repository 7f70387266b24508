"""Stored reasons read back, for people to see. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from domain.ordering import Breakdown, Clamp, Contribution
from domain.units import BatchId, Instant


class _Record(msgspec.Struct):
    batch: int
    policy: str
    computed_at: float
    tier: int
    total: float
    components: tuple[Contribution, ...] = ()
    clamp: Clamp | None = None
    limits: tuple[str, ...] = ()
    usage_snapshot_id: int | None = None
    queue: str = ""
    hold: str | None = None


def breakdown_of(record: Mapping[str, object]) -> Breakdown:
    """What a stored record says, with the queue the batch is really in and what holds it among the limits.

    >>> record = {"batch": 7, "policy": "fifo", "computed_at": 1.0, "tier": 0, "total": -5.0, "hold": "held"}
    >>> breakdown_of(record).limits
    ('held',)
    """
    found = msgspec.convert(record, _Record)
    said = (*found.limits, *([found.hold] if found.hold and found.hold not in found.limits else []))
    return Breakdown(
        BatchId(found.batch),
        found.policy,
        Instant(found.computed_at),
        found.tier,
        found.total,
        found.components,
        said,
        found.clamp,
        found.usage_snapshot_id,
    )
