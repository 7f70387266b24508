"""The last jobs of batches, in PostgreSQL: what they wait for, and copies of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from domain.acceleration import LEAST_HOSTS, LEAST_LOW_FRACTION, LEAST_RESULTS, LOW_BELOW, TIMED_OUT, LowTurnaround
from domain.batches import Batch, BatchCounts
from domain.settlement import CopyUse, ExtraCopy, TailInstance, TailJob
from domain.units import BatchId, Instant, JobId, shard_of
from store import rows, work_rows
from store.counters import CountChanges
from store.percentiles import bulk_connection
from store.pool import Connection, Database, lost_means_unavailable
from store.queries import load

MOST_S = 600.0  # of a look at all instances of a month


class PostgresTails:
    """Satisfies jobs' TailWork."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tails(self, *, fraction: float, jobs: int, limit: int, unsent: float = -1.0) -> Sequence[Batch]:
        found = await self._database.fetch("batch_tails", fraction, jobs, limit, unsent)
        return [rows.batch(row) for row in found]

    async def tail_jobs(self, batch_id: BatchId, *, after: JobId, limit: int, now: Instant) -> Sequence[TailJob]:
        jobs = await self._database.fetch("open_jobs_of_batch", batch_id, after, limit)
        if not jobs:
            return []
        classes = await self._database.fetch("job_classes", sorted({row["job_class_id"] for row in jobs}))
        class_of = {row["job_class_id"]: work_rows.job_class(row) for row in classes}
        instances: dict[JobId, list[TailInstance]] = defaultdict(list)
        for row in await self._database.fetch("tail_instances_of_jobs", [row["job_id"] for row in jobs], now):
            instances[row["job_id"]].append(work_rows.tail_instance(row))
        return [
            TailJob(
                row["job_id"],
                class_of[row["job_class_id"]],
                row["copies"],
                row["tail_copies"],
                tuple(instances[row["job_id"]]),
                row["median_turnaround_s"],
            )
            for row in jobs
        ]

    async def copy_use(self, batch_id: BatchId) -> CopyUse:
        [row] = await self._database.fetch("copy_use", batch_id)
        return CopyUse(int(row["wanted"]), int(row["copies"]))

    async def add_copies(self, copies: Sequence[ExtraCopy], *, now: Instant) -> int:
        distinct = {copy.job_id: copy for copy in copies}

        async def write(connection: Connection) -> int:
            """Rows are locked in the order of the ledger: instances, jobs, batches, counters."""
            await connection.execute(load("lock_instances_of_jobs"), sorted(distinct))
            await connection.fetch(load("lock_jobs"), sorted(distinct))
            return await _add(connection, distinct, now)

        return await self._database.in_transaction(write) if distinct else 0

    async def hasten(self, job_ids: Sequence[JobId]) -> None:
        async def write(connection: Connection) -> None:
            await connection.execute(load("lock_instances_of_jobs"), sorted(job_ids))
            await connection.execute(load("hasten_instances"), sorted(job_ids))

        await self._database.in_transaction(write)

    async def low_turnaround(self, *, since: Instant) -> LowTurnaround:
        limits = (LEAST_RESULTS, TIMED_OUT, LOW_BELOW, LEAST_HOSTS, LEAST_LOW_FRACTION)
        async with bulk_connection(self._database.dsn) as connection:
            with lost_means_unavailable():
                found = await connection.fetch(load("low_turnaround"), since, *limits, timeout=MOST_S)
        return LowTurnaround(
            frozenset(row["id"] for row in found if row["kind"] == "host"),
            frozenset(row["id"] for row in found if row["kind"] == "app"),
            {row["id"]: row["median_s"] for row in found if row["kind"] == "batch"},
        )


async def _add(connection: Connection, copies: dict[JobId, ExtraCopy], now: Instant) -> int:
    taken = await connection.fetch(
        load("take_tail_copies"),
        list(copies),
        [copy.instances for copy in copies.values()],
        [copy.tail_copies for copy in copies.values()],
        [copy.more_instances for copy in copies.values()],
    )
    places = {job_id: place for place, job_id in enumerate(copies)}
    ordered = sorted(taken, key=lambda row: places[row["job_id"]])
    ids = [row["job_id"] for row in ordered]
    await connection.execute(
        load("insert_copies"),
        ids,
        [row["batch_id"] for row in ordered],
        [row["job_class_id"] for row in ordered],
        [shard_of(job_id) for job_id in ids],
        [copies[job_id].retries for job_id in ids],
        [copies[job_id].because for job_id in ids],
        now,
    )
    counts = CountChanges()
    for row in ordered:
        counts.add(row["batch_id"], BatchCounts(unsent=1))
    await counts.write(connection)
    return len(ids)
