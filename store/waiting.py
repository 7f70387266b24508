"""Reads unsent instances in the feeder's order from PostgreSQL, through their two indexes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import structlog

from domain.batches import Batch, place_of
from domain.insight import MOST_NAMED, WorkAhead
from domain.jobs import Candidate, FreshRange, JobClass
from domain.units import AppId, BatchId, InstanceId, JobClassId
from store import rows
from store.pool import Connection, OnDatabase
from store.queries import load

LOOKS = 8  # maximum searches for batches; each one unmarks batches without unsent instances
LEAST_SECOND_LOOK = 500  # minimum page of batches after a search that found such batches
MARK_AGAIN_S = 3600.0  # interval between searches for waiting batches without a mark

log = structlog.get_logger("store")


class PostgresWaitingWork(OnDatabase):
    """Implements the feeder's WaitingWork."""

    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        """Return batches as described in the port, or fewer if the last instances of thousands were just sent."""
        ready: list[Batch] = []
        page, wanted = limit, None if apps is None else list(apps)
        for _ in range(LOOKS):
            first = [rows.batch(row) for row in await self._database.fetch("ready_batches", page, wanted)]
            ready = [batch for batch in first if batch.counts.unsent > 0]
            drained = [batch.batch_id for batch in first if batch.counts.unsent <= 0]
            if drained:
                await self._unmark(drained)
            if len(ready) >= limit or not drained or len(first) < page:
                break
            page = max(limit, LEAST_SECOND_LOOK)
        return ready[:limit]

    async def paused_or_blocked(self, limit: int) -> Sequence[Batch]:
        """Return the first batches in the order that have unsent instances and are paused or over a limit."""
        return [rows.batch(row) for row in await self._database.fetch("paused_or_blocked", limit)]

    async def afap_or_due(self, limit: int, apps: Collection[AppId]) -> Sequence[Batch]:
        """Return those of the first `limit` ready batches of some apps that have fresh unsent instances and are AFAP or
        have a deadline, in order.
        """
        return [rows.batch(row) for row in await self._database.fetch("ready_afap_or_due", limit, list(apps))]

    async def work_before(
        self, place: tuple[int, float, BatchId], limit: int, apps: Collection[AppId], *, without: Collection[BatchId]
    ) -> WorkAhead:
        """Return the work of the batches with fresh instances before a place in the order, among at most `limit` ready
        ones of some apps. `without`: batches that are left out.
        """
        row = await self._database.fetch_first("work_before", *place, limit, list(apps), list(without), MOST_NAMED)
        named = await self._database.fetch("batches_with", row["first"]) if row["first"] else ()
        first = sorted((rows.batch(one) for one in named), key=place_of)
        return WorkAhead(row["batches"], row["unsent"], is_part=row["found"] == limit, first=first)

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        found = await self._database.fetch("job_classes", list(ids))
        return {row["job_class_id"]: rows.job_class(row) for row in found}

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        found = await self._database.fetch(
            "fresh_instances",
            [wanted.batch_id for wanted in ranges],
            [wanted.shard for wanted in ranges],
            [wanted.after_instance_id for wanted in ranges],
            [wanted.limit for wanted in ranges],
        )
        return [rows.candidate(row) for row in found]

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        found = await self._database.fetch("urgent_instances", list(batch_ids), per_batch)
        return [rows.candidate(row) for row in found]

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        found = await self._database.fetch("tail_instances", list(batch_ids), per_batch)
        return [rows.candidate(row) for row in found]

    async def _unmark(self, drained: Sequence[BatchId]) -> None:
        """Unmark these batches until an instance is added."""

        async def write(connection: Connection) -> None:
            locked = await connection.fetch(load("lock_drained"), drained)
            await connection.execute(load("unmark_drained"), [row["batch_id"] for row in locked])

        await self._database.in_transaction(write)

    async def mark_again(self) -> int:
        """Mark waiting batches without a mark, which should not exist. Return their number.

        The database maintains the marks. If a mark is lost, this finds the batch again. It reads every active batch.
        """
        lost = [row["batch_id"] for row in await self._database.fetch("mark_again")]
        if lost:
            log.warning("marked waiting batches that had no mark", batches=len(lost), first=min(lost))
        return len(lost)

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]:
        found = await self._database.fetch("still_unsent", list(instance_ids))
        return {row["instance_id"] for row in found}
