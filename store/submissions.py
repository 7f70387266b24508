"""Writes batches atomically, and aborts them, in PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from domain.batches import Batch, BatchCounts
from domain.errors import AlreadyExistsError, NotFoundError
from domain.jobs import InstanceState, JobClass
from domain.limits import Quantity, Scope
from domain.ordered_work import ACTIVE_HOST_S, SubmissionOrder
from domain.submission import (
    ACTIVE_SUBMITTER_S,
    JobTemplate,
    NewBatch,
    NewJob,
    SubmissionKey,
    SubmittedBefore,
    SubmitterLimits,
    fraction_of_shares,
)
from domain.units import AccountId, AppId, BatchId, Instant, JobClassId, JobId, Seconds, SubmitterId, later, shard_of
from priority.logical_time import abort_refund
from store import rows
from store.counters import CountChanges
from store.counting import Counted, change_counts
from store.ordering import correct_logical_times
from store.pool import Connection, OnDatabase
from store.queries import load
from store.restrictions import end_pauses
from store.rows import mapper, values_of

KEYS_AT_ONCE: Final = 1000  # number of expired keys
CHUNK: Final = 10_000  # jobs or instances per round trip
FINISH_ABORTS_S: Final = Seconds(60.0)  # interval between searches for interrupted aborts
CLASS_COLUMNS: Final = (
    "job_class_id batch_id fpops_est_flop fpops_bound_flop memory_bytes disk_bytes delay_bound_s ncpus quorum"
    " max_errors max_instances hr_type validator tolerance inputs outputs"
)
_class_values = values_of(
    CLASS_COLUMNS, inputs=lambda one: rows.encoded(one.inputs), outputs=lambda one: rows.encoded(one.outputs)
)
_submitted_before = mapper(
    SubmittedBefore, answer=lambda row: None if row["answer"] is None else rows.decoded_object(row["answer"])
)
_batch_values = values_of(
    "submitter_id account_id app_id name qos state jobs_total created_at order_tier order_key logical_start_at"
    " logical_end_at charged_s batch_flop deadline_at user_priority queue level unpaid job_pe hold after_ok after_any"
    " quorum_total"
)


class PostgresBatchWriter:
    """Implements jobs' BatchWriter inside one transaction of PostgresSubmissions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._changes = CountChanges()
        self._template_ids: dict[JobTemplate, int] = {}

    async def standing(self, submitter_id: SubmitterId, *, now: Instant, lock: bool = True) -> SubmitterLimits:
        row = await self._connection.fetchrow(load("lock_submitter" if lock else "submitter_limits"), submitter_id)
        if row is None:
            raise NotFoundError("submitter", submitter_id)
        others = await self._connection.fetchval(load("active_shares"), submitter_id, later(now, -ACTIVE_SUBMITTER_S))
        speed = await self._connection.fetchval(load("pool_speed"), later(now, -ACTIVE_HOST_S))
        return SubmitterLimits(row["logical_at"], fraction_of_shares(row["shares"], others), pool_flop_per_s=speed)

    async def order(
        self, submitter_id: SubmitterId, account_id: AccountId, *, app_id: AppId, queue: str
    ) -> SubmissionOrder:
        row = await self._connection.fetchrow(load("standing_of_leaf"), submitter_id, account_id)
        assert row is not None
        found = await self._connection.fetch(load("list_limits"))
        limits = [rows.limit(one) for one in found]
        active: Mapping[Scope, int] = {}
        if any(one.quantity is Quantity.BATCHES for one in limits):
            counts = await self._connection.fetchrow(load("count_active"), submitter_id, account_id, app_id, queue)
            assert counts is not None
            active = {scope: counts[scope] for scope in Scope}
        return SubmissionOrder(
            rows.standing(row["standing"]),
            rows.reference(row["reference"]),
            None if row["granted_su"] is None else rows.grant(row),
            limits,
            active,
        )

    async def add_batch(self, batch: NewBatch) -> BatchId:
        before = [*batch.after_ok, *batch.after_any]
        if before:
            found = {row["batch_id"] for row in await self._connection.fetch(load("which_batches"), before)}
            for batch_id in before:
                if batch_id not in found:
                    raise NotFoundError("batch", batch_id)
        batch_id = await self._connection.fetchval(load("insert_batch"), *_batch_values(batch))
        await self._connection.execute(load("add_batch_order"), batch_id, batch.created_at)
        await self._connection.execute(load("advance_submitter"), batch.submitter_id, batch.submitter_logical_at)
        return BatchId(batch_id)

    async def explain(self, batch_id: BatchId, record: Mapping[str, object], *, now: Instant) -> None:
        await self._connection.execute(load("write_breakdowns"), [batch_id], [now], [rows.encoded(record)])

    async def remember(self, key: SubmissionKey, batch_id: BatchId, *, now: Instant) -> None:
        since_at = later(now, -key.kept_s)
        await self._connection.execute(load("forget_submission_key"), key.owner, key.key, since_at)
        await self._connection.execute(load("forget_submission_keys"), since_at, KEYS_AT_ONCE)
        args = (key.owner, key.key, key.said, batch_id, now)
        if await self._connection.fetchval(load("insert_submission_key"), *args) is None:
            raise AlreadyExistsError("submission", key.key)

    async def add_classes(self, batch_id: BatchId, job_classes: Sequence[JobClass]) -> Sequence[JobClassId]:
        found = await self._connection.fetch(load("take_job_class_ids"), len(job_classes))
        ids = [JobClassId(row["job_class_id"]) for row in found]
        await self._connection.copy_records_to_table(
            "job_class",
            columns=CLASS_COLUMNS.split(),
            records=[
                _class_values(replace(one, job_class_id=job_class_id, batch_id=batch_id))
                for job_class_id, one in zip(ids, job_classes, strict=True)
            ],
        )
        return ids

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        created_at = await self._connection.fetchval(load("batch_created_at"), batch_id)
        for start in range(0, len(jobs), CHUNK):
            await self._add_chunk(batch_id, jobs[start : start + CHUNK], created_at)

    async def finish(self) -> None:
        """Write the counters."""
        await self._changes.write(self._connection)

    async def _add_chunk(self, batch_id: BatchId, jobs: Sequence[NewJob], created_at: Instant) -> None:
        ids = [JobId(row["job_id"]) for row in await self._connection.fetch(load("take_job_ids"), len(jobs))]
        await self._add_templates(batch_id, jobs)
        await self._connection.copy_records_to_table(
            "job",
            columns=["job_id", "batch_id", "job_class_id", "command_line", "inputs", "template_id", "number"],
            records=[
                (job_id, batch_id, job.job_class_id, job.command_line, _own_inputs(job), *self._shared_of(job))
                for job_id, job in zip(ids, jobs, strict=True)
            ],
        )
        copies = [(job_id, job) for job_id, job in zip(ids, jobs, strict=True) for _ in range(job.copies)]
        await self._connection.copy_records_to_table(
            "instance",
            columns=["job_id", "batch_id", "job_class_id", "shard", "created_at"],
            records=[(job_id, batch_id, job.job_class_id, shard_of(job_id), created_at) for job_id, job in copies],
        )
        self._changes.add(batch_id, BatchCounts(unsent=1), len(copies))

    async def _add_templates(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        """Write those of the jobs' templates that have not been written."""
        for template in dict.fromkeys(job.template for job in jobs if job.template is not None):
            if template not in self._template_ids:
                inputs = None if template.inputs is None else rows.encoded(template.inputs)
                args = (batch_id, template.command_line, inputs)
                self._template_ids[template] = await self._connection.fetchval(load("insert_job_template"), *args)

    def _shared_of(self, job: NewJob) -> tuple[int | None, int | None]:
        return (None, None) if job.template is None else (self._template_ids[job.template], job.number)


class PostgresSubmissions(OnDatabase):
    """Implements jobs' Submissions."""

    @asynccontextmanager
    async def submission(self) -> AsyncIterator[PostgresBatchWriter]:
        async with self._database.transaction() as connection:
            writer = PostgresBatchWriter(connection)
            yield writer
            await writer.finish()

    async def submitted_before(self, key: SubmissionKey, *, now: Instant) -> SubmittedBefore | None:
        row = await self._database.fetch_one("submitted_before", key.owner, key.key, later(now, -key.kept_s))
        return None if row is None else _submitted_before(row)

    async def note_answer(self, key: SubmissionKey, answer: Mapping[str, object]) -> None:
        await self._database.fetch("note_answer", key.owner, key.key, rows.encoded(answer))

    async def abort_batch(self, batch_id: BatchId, *, now: Instant) -> Batch:
        """Abort a batch in small transactions, because one for a million jobs would block their reports. First the
        batch ends and its submitter's logical time is refunded, then its jobs end, then its unsent instances.

        If this is interrupted, no more instances are sent; `finish_aborts` or a second call finishes the work.
        """
        await self._database.in_transaction(partial(_end, batch_id=batch_id, now=now))
        batch = await self._batch(batch_id)
        if batch.state != "aborted":
            return batch
        await self._finish_abort(batch_id, batch.ended_at or now)
        return await self._batch(batch_id)

    async def finish_aborts(self) -> int:
        """Finish interrupted aborts. Return how many batches are now completely aborted."""
        unfinished = await self._database.fetch("unfinished_aborts")
        return sum([await self._finish_abort(row["batch_id"], row["ended_at"]) for row in unfinished])

    async def _finish_abort(self, batch_id: BatchId, ended_at: Instant) -> bool:
        await self._cancel_unsent(batch_id)
        await self._cancel_jobs(batch_id, ended_at)
        await self._cancel_unsent(batch_id)  # instances created while the jobs were still open
        return await self._database.fetch_one("forget_abort", batch_id) is not None

    async def _cancel_unsent(self, batch_id: BatchId) -> None:
        step = change_counts(Counted(InstanceState.UNSENT), Counted(InstanceState.CANCELLED))

        async def cancel_some(connection: Connection) -> int:
            cancelled = await connection.fetch(load("cancel_unsent_of_batch"), batch_id, CHUNK)
            if cancelled:
                changes = CountChanges()
                changes.add(batch_id, step, len(cancelled))
                await changes.write(connection)
            return len(cancelled)

        while await self._database.in_transaction(cancel_some):
            continue

    async def _cancel_jobs(self, batch_id: BatchId, ended_at: Instant) -> None:
        last = 0
        while True:
            found = await self._database.fetch("cancel_open_jobs_of_batch", batch_id, ended_at, last, CHUNK)
            if not found:
                return
            last = max(row["job_id"] for row in found)

    async def _batch(self, batch_id: BatchId) -> Batch:
        return rows.batch(await self._database.fetch_known("batch_by_id", batch_id, kind="batch"))


async def _end(connection: Connection, *, batch_id: BatchId, now: Instant) -> None:
    """End a batch. If a submission has locked the submitter's row, the next ordering pass makes the refund."""
    if await connection.fetchval(load("end_batch_as_aborted"), batch_id, now) is None:
        return
    await end_pauses(connection, [batch_id])
    row = await connection.fetchrow(load("ended_batch_to_correct"), batch_id)
    assert row is not None
    await connection.execute(load("note_abort"), batch_id)
    refund = abort_refund(rows.ordered_batch(row))
    if refund is not None:
        await correct_logical_times(connection, [refund])


def _own_inputs(job: NewJob) -> str | None:
    return None if job.inputs is None else rows.encoded(job.inputs)
