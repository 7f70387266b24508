"""Read-only looks at batches, jobs and hosts in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from domain.batches import Batch
from domain.dispatch import Upload
from domain.errors import NotFoundError
from domain.hosts import Host, HostAppVersion
from domain.jobs import JobClass
from domain.units import AccountId, AppId, BatchId, HostId, InstanceId, JobId, SubmitterId
from domain.views import JobRow, Whose
from store import rows, work_rows
from store.pool import Database


class PostgresViews:
    """Satisfies administration's Views."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def batch(self, batch_id: BatchId) -> Batch:
        return rows.batch(await self._one("batch_by_id", "batch", batch_id))

    async def batches(self, *, limit: int, before: BatchId | None = None) -> Sequence[Batch]:
        return [rows.batch(row) for row in await self._database.fetch("list_batches", limit, before)]

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        return [rows.batch(row) for row in await self._database.fetch("batches_with", list(ids))]

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]:
        return [work_rows.job_class(row) for row in await self._database.fetch("classes_of_batch", batch_id)]

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        """Those of the history are looked for last: one that is moved meanwhile is found twice, not never."""
        found = await self._database.fetch("list_jobs", batch_id, limit, after or 0)
        moved = await self._database.fetch("list_finished_jobs", batch_id, limit, after or 0)
        by_id = {row["job_id"]: work_rows.job_row(row) for row in (*moved, *found)}
        return [by_id[job_id] for job_id in sorted(by_id)[:limit]]

    async def job(self, job_id: JobId) -> JobRow:
        """Every job has instances: one found without any was moved to the history a moment ago."""
        row = await self._database.fetch_one("job_by_id", job_id)
        instances = [] if row is None else await self._database.fetch("instances_of_job", job_id)
        if row is None or not instances:
            row = await self._one("finished_job_by_id", "job", job_id)
            instances = await self._database.fetch("finished_instances_of_job", job_id, row["batch_id"])
        return work_rows.job_row(row, tuple(work_rows.instance_row(instance) for instance in instances))

    async def uploads_of(
        self, batch_id: BatchId, instances: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Upload, ...]]:
        """The history is looked at last: what is moved meanwhile is there."""
        found = list(await self._database.fetch("uploads_of_instances", list(instances)))
        left = set(instances).difference(row["instance_id"] for row in found)
        if left:
            found += await self._database.fetch("uploads_of_finished_instances", batch_id, sorted(left))
        return {row["instance_id"]: work_rows.uploads(row["uploads"]) for row in found}

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]:
        return [rows.host(row) for row in await self._database.fetch("list_hosts", limit, after or 0)]

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]:
        host = rows.host(await self._one("host_by_id", "host", host_id))
        found = await self._database.fetch("versions_of_hosts", [host_id])
        return host, [rows.host_app_version(row) for row in found]

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        return {
            row["batch_id"]: Whose(row["app"], row["submitter"], row["account"])
            for row in await self._database.fetch("whose_batches", list(ids))
        }

    async def account_name(self, account_id: AccountId) -> str:
        return str((await self._one("account_name", "account", account_id))["name"])

    async def submitter_name(self, submitter_id: SubmitterId) -> str:
        return str((await self._one("submitter_name", "submitter", submitter_id))["name"])

    async def app_name(self, app_id: AppId) -> str:
        return str((await self._one("app_name", "app", app_id))["name"])

    async def check_counters(self) -> Sequence[str]:
        """One sentence for each (batch, shard) whose counters differ from its rows; reads every instance."""
        return [
            f"batch {row['batch_id']}: counted {row['counted']}, rows say {row['expected']}"
            for row in await self._database.fetch("counters_that_differ")
        ]

    async def _one(self, query: str, kind: str, key: int) -> asyncpg.Record:
        row = await self._database.fetch_one(query, key)
        if row is None:
            raise NotFoundError(kind, key)
        return row
