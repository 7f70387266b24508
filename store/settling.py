"""Reads and writes jobs to settle, for the validator, and the last jobs of batches, for tail copies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import asyncpg

from domain.acceleration import LEAST_HOSTS, LEAST_LOW_FRACTION, LEAST_RESULTS, LOW_BELOW, TIMED_OUT, LowTurnaround
from domain.batches import Batch, BatchCounts
from domain.jobs import JobState
from domain.settings import SchedulerSettings
from domain.settlement import ALL_JOBS, CopyUse, ExtraCopy, JobFacts, JobSettlement, JobShare, TailJob
from domain.units import BatchId, Instant, JobId, shard_of
from store import rows
from store.counters import CountChanges, StatisticsChanges, count_steps, distinct_steps, step_columns
from store.counting import job_counts
from store.percentiles import bulk_connection
from store.pool import Connection, Database, OnDatabase, lost_means_unavailable
from store.queries import load
from store.restrictions import end_pauses
from store.rows import Value, columns_of


class PostgresUnsettledJobs:
    """Implements jobs' UnsettledJobs. `settings` returns the current settings, which have the hosts' quotas."""

    def __init__(self, database: Database, settings: Callable[[], SchedulerSettings]) -> None:
        self._database = database
        self._settings = settings

    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        """Return the unsettled jobs. Three queries suffice for any number of jobs."""
        jobs = await self._database.fetch("unsettled_jobs", limit, now, share.of, share.part, with_content)
        job, one = rows.job_facts, rows.instance_facts
        return await _whole(self._database, jobs, "instances_of_jobs", of_job=job, of_one=one)

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        """Start the jobs' back-off in a transaction that checks that this process still has a share of the task."""

        async def begin(connection: Connection) -> Mapping[JobId, int]:
            begun = await connection.fetch(load("begin_comparisons"), sorted(job_ids), now)
            return {row["job_id"]: row["attempts"] for row in begun}

        return await self._database.in_transaction(begin)

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        if not settlements:
            return 0

        async def write(connection: Connection) -> int:
            return await _settle(connection, settlements, self._settings())

        return await self._database.in_transaction(write)


async def _whole(
    database: Database,
    jobs: Sequence[asyncpg.Record],
    query: str,
    *arguments: object,
    of_job: Callable[..., Value],
    of_one: Callable[[asyncpg.Record], object],
) -> Sequence[Value]:
    """Return jobs with their classes and instances. `query` reads the instances by job id."""
    if not jobs:
        return []
    classes = await database.fetch("job_classes", sorted({row["job_class_id"] for row in jobs}))
    class_of = {row["job_class_id"]: rows.job_class(row) for row in classes}
    instances: dict[JobId, list[object]] = defaultdict(list)
    for row in await database.fetch(query, [row["job_id"] for row in jobs], *arguments):
        instances[row["job_id"]].append(of_one(row))
    return [of_job(row, class_of[row["job_class_id"]], tuple(instances[row["job_id"]])) for row in jobs]


async def _settle(connection: Connection, settlements: Sequence[JobSettlement], settings: SchedulerSettings) -> int:
    """Lock rows in the ledger's order: instances, jobs, marks, batches, counters, statistics, credit."""
    jobs = await _lock(connection, [settlement.job_id for settlement in settlements])
    current = [s for s in settlements if s.job_id in jobs and _is_current(s, jobs[s.job_id])]
    if not current:
        return 0
    counts, statistics = CountChanges(), StatisticsChanges()
    steps = distinct_steps([step for settlement in current for step in settlement.steps])
    made = await connection.fetch(
        load("step_instances"),
        *step_columns(steps),
        [step.reason or None for step in steps.values()],
        [step.credit for step in steps.values()],
    )
    count_steps(made, steps, counts, statistics)
    await connection.execute(load("settle_jobs"), *_settled_columns(current))
    await _add_instances(connection, [s for s in current if s.new_instances > 0], jobs, counts)
    hastened = [s.job_id for s in current if s.hasten]
    if hastened:
        await connection.execute(load("hasten_instances"), hastened)
    needed = [s.job_id for s in current if s.copies_needed]
    if needed:
        await connection.execute(load("keep_copies"), needed)
    await connection.execute(load("unmark_jobs"), [s.job_id for s in current])
    ended = _count_jobs(current, jobs, counts)
    await counts.write(connection, ended=ended)
    if ended:
        complete = await connection.fetch(load("complete_batches"), list(ended), list(ended.values()))
        await end_pauses(connection, [row["batch_id"] for row in complete])
    await statistics.write(connection, settings)
    await _grant(connection, made, now=max(s.settled_at for s in current))
    return len(current)


async def _grant(connection: Connection, made: Sequence[asyncpg.Record], *, now: Instant) -> None:
    """Add the credit granted by the steps to hosts, volunteers and teams."""
    granted = [row for row in made if row["credit"] is not None]
    if granted:
        columns = [[row[name] for row in granted] for name in ("host_id", "volunteer_id", "credit")]
        await connection.execute(load("grant_credit"), *columns, now)


async def _lock(connection: Connection, job_ids: Sequence[JobId]) -> dict[JobId, tuple[asyncpg.Record, int | None]]:
    """Return the current jobs, each with the serial of its mark."""
    await connection.execute(load("lock_instances_of_jobs"), job_ids)
    jobs = await connection.fetch(load("lock_jobs"), job_ids)
    serials = {row["job_id"]: row["serial"] for row in await connection.fetch(load("lock_marks"), job_ids)}
    return {row["job_id"]: (row, serials.get(row["job_id"])) for row in jobs}


def _is_current(settlement: JobSettlement, now: tuple[asyncpg.Record, int | None]) -> bool:
    """Return whether the job is unchanged since it was read. A job that has ended stays ended."""
    row, serial = now
    return serial == settlement.serial and row["state"] in (JobState.OPEN, settlement.state)


_settled_columns = columns_of(
    "job_id state settled_at canonical_instance_id failure",
    canonical_instance_id=lambda s: s.canonical_instance_id if s.state is JobState.VALID else None,
    failure=lambda s: s.failure if s.state is JobState.FAILED else None,
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
    """Count the jobs that end. Return their batches with the time of the last end in each."""
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


MOST_S = 600.0  # time limit of a query over all instances of a month


class PostgresTails(OnDatabase):
    """Implements jobs' TailWork."""

    async def tails(self, *, fraction: float, jobs: int, limit: int, unsent: float = -1.0) -> Sequence[Batch]:
        found = await self._database.fetch("batch_tails", fraction, jobs, limit, unsent)
        return [rows.batch(row) for row in found]

    async def tail_jobs(self, batch_id: BatchId, *, after: JobId, limit: int, now: Instant) -> Sequence[TailJob]:
        jobs = await self._database.fetch("open_jobs_of_batch", batch_id, after, limit)
        query, job, one = "tail_instances_of_jobs", rows.tail_job, rows.tail_instance
        return await _whole(self._database, jobs, query, now, of_job=job, of_one=one)

    async def copy_use(self, batch_id: BatchId) -> CopyUse:
        [row] = await self._database.fetch("copy_use", batch_id)
        return CopyUse(int(row["wanted"]), int(row["copies"]))

    async def add_copies(self, copies: Sequence[ExtraCopy], *, now: Instant) -> int:
        distinct = {copy.job_id: copy for copy in copies}

        async def write(connection: Connection) -> int:
            """Lock rows in the ledger's order: instances, jobs, marks, batches, counters."""
            await _lock(connection, sorted(distinct))
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
    await connection.execute(load("renew_marks"), ids)  # a settlement decided before would not cancel the copy
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
