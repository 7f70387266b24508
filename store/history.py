"""Jobs of batches that ended long ago, in PostgreSQL: moved out of the busy tables, and dropped, by the month."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from domain.errors import UnavailableError
from domain.history import FinishedMonth, JobPlace, MovedJobs, OutputPage, month_bounds, month_of
from domain.units import BatchId, InstanceId, Instant, JobId
from store.pool import Connection, Database
from store.queries import load
from store.sweeping import COUNT_DUE


class PostgresHistory:
    """Satisfies jobs' EndedWork and administration's History."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        async def move(connection: Connection) -> MovedJobs:
            await connection.execute(load("lock_history"))
            found = await connection.fetch(load("ended_jobs"), before, after.batch_id, after.job_id, limit)
            if not found:
                return MovedJobs()
            jobs, instances = await _move(connection, found, before)
            last = found[-1]
            return MovedJobs(jobs, instances, JobPlace(BatchId(last["batch_id"]), JobId(last["job_id"])), more=True)

        return await self._database.in_transaction(move)

    async def months(self) -> Sequence[FinishedMonth]:
        return [
            FinishedMonth(
                row["month"],
                row["jobs"],
                row["instances"],
                row["files"],
                row["file_bytes"],
                row["table_bytes"],
                row["purged_at"],
            )
            for row in await self._database.fetch("finished_months")
        ]

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        found = await self._database.fetch("finished_outputs", month, after, limit)
        names = tuple(row["name"] for row in found if row["name"] is not None)
        return OutputPage(names, InstanceId(found[-1]["instance_id"]) if found else None)

    async def purge_month(self, month: str, *, now: Instant) -> None:
        async def drop(connection: Connection) -> None:
            await connection.execute(load("lock_history"))
            await connection.execute(load("drop_finished_month"), month, now)
            await connection.execute(load("purge_forecasts"), month)

        try:
            await self._database.in_transaction(drop)
        except asyncpg.LockNotAvailableError as error:
            raise UnavailableError(f"somebody reads the history of {month}: try again later") from error


async def _move(connection: Connection, found: Sequence[asyncpg.Record], before: Instant) -> tuple[int, int]:
    """Move those of some jobs of a batch that nothing more will happen to; how many, with how many instances.

    Rows are locked in the order of the ledger: whoever reports about one of them has marked its job before, or
    finds it gone.
    """
    job_ids = [row["job_id"] for row in found]
    await connection.execute(load("lock_instances_of_jobs"), job_ids)
    await connection.execute(load("lock_jobs"), job_ids)
    movable = [row["job_id"] for row in await connection.fetch(load("movable_jobs"), job_ids, before, COUNT_DUE)]
    if not movable:
        return 0, 0
    batch_ended_at = found[0]["batch_ended_at"]
    month = month_of(batch_ended_at)
    await connection.execute(load("add_finished_month"), month, *month_bounds(month))
    moved = await connection.fetchrow(load("finish_instances"), movable, batch_ended_at)
    assert moved is not None  # an aggregate
    await connection.execute(load("finish_jobs"), movable, batch_ended_at)
    counts = (moved["instances"], moved["files"], moved["file_bytes"])
    await connection.execute(load("count_finished"), month, len(movable), *counts)
    return len(movable), moved["instances"]
