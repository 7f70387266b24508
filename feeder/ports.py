"""Interfaces that the feeder needs from the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from domain.batches import Batch
from domain.jobs import Candidate, FreshRange, JobClass
from domain.units import BatchId, InstanceId, JobClassId


class WaitingWork(Protocol):
    """The unsent instances, read in index order without scans."""

    async def ready_batches(self, limit: int) -> Sequence[Batch]:
        """Return active batches with unsent instances by (order_tier, order_key, batch_id), with counts."""
        ...

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]: ...

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        """Return fresh instances of every range, ascending id within a range."""
        ...

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        """Return urgent instances of each batch from the start of its range: retries descending, id."""
        ...

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        """Return fresh instances of each batch over all shards, ascending id within a shard."""
        ...

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]: ...


class Shards(Protocol):
    """The shards that this worker feeds."""

    def owned(self) -> frozenset[int]:
        """Return the shards whose locks this worker holds now; empty while its lock connection is in doubt."""
        ...
