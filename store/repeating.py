"""Reads what failed in a batch, and runs its jobs again: failed jobs in place, or all jobs in a copy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from domain.attention import LOOKED_AT
from domain.batches import BatchState
from domain.errors import ConflictError, NotFoundError
from domain.jobs import JobState
from domain.submission import JobTemplate, NewJob
from domain.units import AppVersionId, BatchId, Instant, JobClassId, JobId
from domain.views import FailedInstance
from lifecycle.states import JOB_ERRORS
from priority.logical_time import notes_of_reopened
from store import rows
from store.counters import CountChanges
from store.counting import job_counts
from store.pool import Connection, OnDatabase
from store.queries import load

CHUNK: Final = 1000  # jobs per transaction
_failed = rows.mapper(FailedInstance)


class PostgresRepeating(OnDatabase):
    """Implements jobs' BatchJobs, and retries failed jobs."""

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

    async def failures(self, batch_id: BatchId, *, limit: int, stderr_chars: int) -> Sequence[FailedInstance]:
        """Return instances with an error, the most retried first: at most `limit` in each state."""
        asked = (batch_id, sorted(JOB_ERRORS), limit, stderr_chars)
        return [_failed(row) for row in await self._database.fetch("failures_of_batch", *asked)]

    async def failures_of_version(
        self, app_version_id: AppVersionId, *, since: Instant, limit: int, stderr_chars: int
    ) -> Sequence[FailedInstance]:
        """Return the latest errors of a version since an instant, among the last LOOKED_AT failures of all apps."""
        asked = (app_version_id, since, LOOKED_AT, stderr_chars, limit)
        return [_failed(row) for row in await self._database.fetch("failures_of_version", *asked)]

    async def class_counts(self, batch_id: BatchId) -> Mapping[JobClassId, int]:
        return {row["job_class_id"]: row["jobs"] for row in await self._database.fetch("class_counts", batch_id)}

    async def jobs_to_copy(self, batch_id: BatchId) -> AsyncIterator[Sequence[NewJob]]:
        """Yield jobs. The history is read last: a job moved in between is found twice, never missed."""
        found = await self._database.fetch("templates_of_batch", batch_id)
        templates = {row["template_id"]: JobTemplate(row["command_line"], rows.inputs(row["inputs"])) for row in found}
        last, read = 0, CHUNK
        while read == CHUNK:
            asked = (batch_id, last, CHUNK)
            busy = await self._database.fetch("jobs_to_copy", *asked)
            moved = await self._database.fetch("finished_jobs_to_copy", *asked)
            by_id = {row["job_id"]: row for row in (*moved, *busy)}
            ids = sorted(by_id)[:CHUNK]
            read = len(ids)
            if ids:
                last = ids[-1]
                yield [_job(by_id[job_id], templates) for job_id in ids]


def _job(row: rows.Row, templates: Mapping[int, JobTemplate]) -> NewJob:
    template = None if row["template_id"] is None else templates[row["template_id"]]
    return NewJob(
        row["job_class_id"],
        row["command_line"],
        rows.inputs(row["inputs"]),
        template=template,
        number=row["number"] or 0,
    )


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
    one = rows.ordered_batch(row)
    if one.notes is None:
        columns = rows.notes_columns([notes_of_reopened(one, now)])
        await connection.execute(load("write_batch_orders"), [batch_id], *columns)
