"""What lists of the console show, in PostgreSQL: page by page, by key, counted by counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import asyncpg

from domain.batches import QoS
from domain.jobs import InstanceState
from domain.units import BatchId, HostId, InstanceId
from domain.views import (
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
)
from store import rows
from store.pool import Database

LAST_ID = 2**63 - 1
LAST_HOST_ID = 2**31 - 1
LEAST_TIER = -(2**31)
MOST_RETRIES = 2**15


class PostgresListings:
    """Satisfies the console's Listings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def batches(
        self, choice: BatchChoice, sort: BatchSort, *, after: BatchPlace | None, limit: int
    ) -> Sequence[ListedBatch]:
        chosen = (choice.qos, choice.app_id, choice.submitter_id, choice.text.lower())
        match sort:
            case BatchSort.NEWEST:
                before = LAST_ID if after is None else after.batch_id
                found = await self._database.fetch("batches_newest", before, limit, choice.state, *chosen)
            case BatchSort.QUEUE:
                place = (LEAST_TIER, 0.0, 0) if after is None else (after.order_tier, after.order_key, after.batch_id)
                found = await self._database.fetch("batches_in_queue", *place, limit, *chosen)
            case BatchSort.DEADLINE:
                at = (float("-inf"), 0) if after is None else (after.deadline_at, after.batch_id)
                found = await self._database.fetch("batches_by_deadline", *at, limit, *chosen)
        return [_listed(row) for row in found]

    async def names(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, str]:
        return {row["batch_id"]: row["name"] for row in await self._database.fetch("batch_names", list(batch_ids))}

    async def totals(self) -> Sequence[ActiveTotal]:
        return [
            ActiveTotal(
                row["app_name"],
                QoS(row["qos"]),
                row["batches"],
                row["held"],
                row["jobs_total"],
                row["jobs_validated"],
                row["jobs_failed"],
                row["unsent"],
                row["in_progress"],
                row["sent"],
                row["deadlines_missed"],
            )
            for row in await self._database.fetch("active_totals")
        ]

    async def instances(
        self, batch_id: BatchId, states: Collection[InstanceState], *, after: InstancePlace | None, limit: int
    ) -> Sequence[ListedInstance]:
        """Those of the history are looked for last: one that is moved meanwhile is found twice, not never."""
        place = InstancePlace(MOST_RETRIES, InstanceId(0)) if after is None else after
        asked = (batch_id, sorted(states), -place.retries, place.instance_id, limit)
        found = await self._database.fetch("instances_of_batch", *asked)
        moved = await self._database.fetch("finished_instances_of_batch", *asked)
        by_id = {row["instance_id"]: _instance(row) for row in (*moved, *found)}
        return sorted(by_id.values(), key=lambda one: (-one.retries, one.instance_id))[:limit]

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        return [held_instance(row) for row in await self._database.fetch("held_instances", host_id, limit)]


def held_instance(row: asyncpg.Record) -> ListedInProgress:
    return ListedInProgress(
        row["instance_id"],
        row["job_id"],
        row["batch_id"],
        row["app_name"],
        row["host_id"],
        row["sent_at"],
        row["due_at"],
        row["est_runtime_s"],
        row["tight"],
    )


def _instance(row: asyncpg.Record) -> ListedInstance:
    return ListedInstance(
        row["instance_id"],
        row["job_id"],
        InstanceState(row["state"]),
        row["retries"],
        row["urgent"],
        row["tight"],
        row["created_at"],
        row["host_id"],
        row["sent_at"],
        row["due_at"],
        row["reported_at"],
        row["reason"] or "",
    )


def _listed(row: asyncpg.Record) -> ListedBatch:
    return ListedBatch(rows.batch(row), row["app_name"], row["submitter_name"], row["account_name"])
