"""The feeder's ports to the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from domain.batches import Batch
from domain.jobs import Candidate, FreshRange, JobClass
from domain.units import AppId, BatchId, InstanceId, JobClassId


class WaitingWork(Protocol):
    """Reads unsent instances in index order, without scans."""

    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        """Return active batches with unsent instances in order of (order_tier, order_key, batch_id), with counters.

        `apps`: only batches of these apps.
        """
        ...

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]: ...

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        """Return the fresh instances of all ranges, in order of id within each range."""
        ...

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        """Return each batch's urgent instances from the start of its range: most retries first, then by id."""
        ...

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        """Return each batch's fresh instances over all shards, in order of id within each shard."""
        ...

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]: ...


class Shards(Protocol):
    """The shards fed by this worker."""

    def owned(self) -> frozenset[int]:
        """Return the shards whose locks this worker currently holds; empty while its lock connection is in doubt."""
        ...
