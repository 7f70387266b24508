"""Unsent instances as the feeder asks for them. Pure."""

from __future__ import annotations

from domain.jobs import Ready
from domain.quick import quick_dataclass
from domain.units import BatchId, HostId, InstanceId, VolunteerId


@quick_dataclass(frozen=True, slots=True)
class FreshRange:
    """The next `limit` fresh instances of a (batch, shard) behind `after_instance_id`."""

    batch_id: BatchId
    shard: int
    after_instance_id: InstanceId
    limit: int


@quick_dataclass(frozen=True, slots=True)
class Candidate:
    """An unsent instance and who had its siblings."""

    ready: Ready
    sibling_hosts: tuple[HostId, ...] = ()
    sibling_volunteers: tuple[VolunteerId, ...] = ()
