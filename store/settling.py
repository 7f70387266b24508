"""Jobs something happened to, in PostgreSQL: read for the validator, and settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import asyncpg

from domain.batches import BatchCounts
from domain.jobs import JobState
from domain.settings import SchedulerSettings
from domain.settlement import InstanceFacts, JobFacts, JobSettlement
from domain.units import BatchId, Instant, JobId, shard_of
from store import work_rows
from store.counters import CountChanges
from store.counting import job_counts
from store.pool import Connection, Database
from store.queries import load
from store.statistics import StatisticsChanges
from store.steps import count_steps, distinct_steps, step_columns


class PostgresUnsettledJobs:
    """Satisfies jobs' UnsettledJobs. `settings` are those of the moment, for hosts' quotas."""

    def __init__(self, database: Database, settings: Callable[[], SchedulerSettings]) -> None:
        self._database = database
        self._settings = settings

    async def unsettled(self, limit: int, *, now: Instant) -> Sequence[JobFacts]:
        """Three queries, however many jobs there are."""
        jobs = await self._database.fetch("unsettled_jobs", limit, now)
        if not jobs:
            return []
        classes = await self._database.fetch("job_classes", sorted({row["job_class_id"] for row in jobs}))
        class_of = {row["job_class_id"]: work_rows.job_class(row) for row in classes}
        app_of = {row["job_id"]: row["app_name"] for row in jobs}
        instances: dict[JobId, list[InstanceFacts]] = defaultdict(list)
        for row in await self._database.fetch("instances_of_jobs", list(app_of)):
            instances[row["job_id"]].append(work_rows.instance_facts(row, app_of[row["job_id"]]))
        return [
            work_rows.job_facts(row, class_of[row["job_class_id"]], tuple(instances[row["job_id"]])) for row in jobs
        ]

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        rows = await self._database.fetch("begin_comparisons", sorted(job_ids), now)
        return {row["job_id"]: row["attempts"] for row in rows}

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        if not settlements:
            return 0

        async def write(connection: Connection) -> int:
            return await _settle(connection, settlements, self._settings())

        return await self._database.in_transaction(write)


async def _settle(connection: Connection, settlements: Sequence[JobSettlement], settings: SchedulerSettings) -> int:
    """Rows are locked in the order of the ledger: instances, jobs, marks, batches, counters, statistics."""
    jobs = await _lock(connection, [settlement.job_id for settlement in settlements])
    current = [s for s in settlements if s.job_id in jobs and _is_current(s, jobs[s.job_id])]
    if not current:
        return 0
    counts, statistics = CountChanges(), StatisticsChanges()
    steps = distinct_steps([step for settlement in current for step in settlement.steps])
    count_steps(
        await connection.fetch(
            load("step_instances"), *step_columns(steps), [step.reason or None for step in steps.values()]
        ),
        steps,
        counts,
        statistics,
    )
    await _write_jobs(connection, current)
    await _add_instances(connection, [s for s in current if s.new_instances > 0], jobs, counts)
    hastened = [s.job_id for s in current if s.hasten]
    if hastened:
        await connection.execute(load("hasten_instances"), hastened)
    await connection.execute(load("unmark_jobs"), [s.job_id for s in current])
    ended = _count_jobs(current, jobs, counts)
    await counts.write(connection, ended=ended)
    if ended:
        await connection.execute(load("complete_batches"), list(ended), list(ended.values()))
    await statistics.write(connection, settings)
    return len(current)


async def _lock(connection: Connection, job_ids: Sequence[JobId]) -> dict[JobId, tuple[asyncpg.Record, int | None]]:
    """The jobs as they are now, each with the serial of its mark."""
    await connection.execute(load("lock_instances_of_jobs"), job_ids)
    jobs = await connection.fetch(load("lock_jobs"), job_ids)
    serials = {row["job_id"]: row["serial"] for row in await connection.fetch(load("lock_marks"), job_ids)}
    return {row["job_id"]: (row, serials.get(row["job_id"])) for row in jobs}


def _is_current(settlement: JobSettlement, now: tuple[asyncpg.Record, int | None]) -> bool:
    """Whether nothing has happened since the job was read; a job that has ended stays as it ended."""
    row, serial = now
    return serial == settlement.serial and row["state"] in (JobState.OPEN, settlement.state)


async def _write_jobs(connection: Connection, settlements: Sequence[JobSettlement]) -> None:
    await connection.execute(
        load("settle_jobs"),
        [s.job_id for s in settlements],
        [s.state for s in settlements],
        [s.settled_at for s in settlements],
        [s.canonical_instance_id if s.state is JobState.VALID else None for s in settlements],
        [s.failure if s.state is JobState.FAILED else None for s in settlements],
    )


async def _add_instances(
    connection: Connection,
    settlements: Sequence[JobSettlement],
    jobs: Mapping[JobId, tuple[asyncpg.Record, int | None]],
    counts: CountChanges,
) -> None:
    if not settlements:
        return
    rows = [jobs[s.job_id][0] for s in settlements]
    await connection.execute(
        load("insert_instances"),
        [s.job_id for s in settlements],
        [row["batch_id"] for row in rows],
        [row["job_class_id"] for row in rows],
        [shard_of(s.job_id) for s in settlements],
        [s.new_instances for s in settlements],
        [s.retries for s in settlements],
        [s.settled_at for s in settlements],
    )
    for s, row in zip(settlements, rows, strict=True):
        counts.add(row["batch_id"], BatchCounts(unsent=s.new_instances))


def _count_jobs(
    settlements: Sequence[JobSettlement],
    jobs: Mapping[JobId, tuple[asyncpg.Record, int | None]],
    counts: CountChanges,
) -> dict[BatchId, Instant]:
    """Count the jobs that end; returns the batches they are of, with the last instant of an end."""
    alike: Counter[tuple[BatchId, str, JobState]] = Counter()
    ended: dict[BatchId, Instant] = {}
    for s in settlements:
        batch_id, before = jobs[s.job_id][0]["batch_id"], jobs[s.job_id][0]["state"]
        if before == s.state:
            continue
        alike[batch_id, before, s.state] += 1
        ended[batch_id] = max(ended.get(batch_id, s.settled_at), s.settled_at)
    for (batch_id, before, state), times in alike.items():
        counts.add(batch_id, job_counts(JobState(before), state), times)
    return ended
