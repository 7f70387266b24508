"""Runs jobs of a batch again: failed jobs in place, or all jobs in a copy of the batch."""

from __future__ import annotations

from typing import Final

from domain.batches import BatchState
from domain.errors import ConflictError, NotFoundError
from domain.jobs import JobState
from domain.units import BatchId, Instant, JobId
from priority.logical_time import notes_of_reopened
from store import order_rows
from store.counters import CountChanges
from store.counting import job_counts
from store.pool import Connection, OnDatabase
from store.queries import load

CHUNK: Final = 1000  # jobs per transaction


class PostgresRepeating(OnDatabase):
    async def retry_failed(self, batch_id: BatchId, *, now: Instant) -> int:
        """Open a batch's failed jobs again, and a complete batch with them. Return how many.

        The validator creates their new instances. Raises NotFoundError; ConflictError for an aborted batch, or one with
        jobs in the history.
        """
        retried, last = 0, JobId(0)
        while True:
            found = await self._database.fetch("failed_jobs_of_batch", batch_id, last, CHUNK)
            job_ids = [JobId(row["job_id"]) for row in found]

            async def reopen(connection: Connection, job_ids: list[JobId] = job_ids) -> int:
                return await _reopen(connection, batch_id, job_ids, now)

            retried += await self._database.in_transaction(reopen)
            if len(found) < CHUNK:
                return retried
            last = job_ids[-1]


async def _reopen(connection: Connection, batch_id: BatchId, job_ids: list[JobId], now: Instant) -> int:
    """Open jobs and their batch again. Rows are locked in the ledger's order, after the history and before counters.

    The validator then settles the jobs, and creates the instances that they lack.
    """
    await connection.execute(load("lock_history"))
    await connection.execute(load("lock_instances_of_jobs"), job_ids)
    await connection.execute(load("lock_jobs"), job_ids)
    await connection.execute(load("lock_marks"), job_ids)
    await connection.execute(load("lock_ordering"))
    batch = await connection.fetchrow(load("batch_to_retry"), batch_id)
    if batch is None:
        raise NotFoundError("batch", batch_id)
    if batch["state"] == BatchState.ABORTED:
        raise ConflictError(f"batch {batch_id} was aborted: its jobs cannot be retried")
    if batch["in_history"]:
        raise ConflictError(f"jobs of batch {batch_id} are in the history: clone the batch instead")
    opened = [row["job_id"] for row in await connection.fetch(load("reopen_jobs"), job_ids)]
    if not opened:
        return 0
    await connection.execute(load("mark_jobs"), opened)
    counts = CountChanges()
    counts.add(batch_id, job_counts(JobState.FAILED, JobState.OPEN), len(opened))
    if batch["state"] == BatchState.COMPLETE:
        await connection.execute(load("outdate_ordering"))
        await connection.execute(load("reopen_batch"), batch_id)
    await counts.write(connection)
    if batch["state"] == BatchState.COMPLETE:
        await _note_order(connection, batch_id, now)
    return len(opened)


async def _note_order(connection: Connection, batch_id: BatchId, now: Instant) -> None:
    """Store the batch's ordering notes again, if a pass deleted them when it ended."""
    row = await connection.fetchrow(load("ended_batch_to_correct"), batch_id)
    assert row is not None
    one = order_rows.ordered_batch(row)
    if one.notes is None:
        columns = order_rows.notes_columns([notes_of_reopened(one, now)])
        await connection.execute(load("write_batch_orders"), [batch_id], *columns)
