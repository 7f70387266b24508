"""Handles overdue work and outages, and moves jobs that ended long ago to the history, in monthly partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import asyncpg

from domain.clock import CLOCK_WAS_AHEAD_S
from domain.dispatch import InstanceStep, Upload
from domain.errors import UnavailableError
from domain.history import FinishedMonth, JobPlace, MovedJobs, OutputPage, month_bounds, month_of
from domain.settings import SchedulerSettings
from domain.settlement import OutageReport, Overdue
from domain.units import BatchId, InstanceId, Instant, JobId, Seconds, elapsed_s
from store import rows
from store.counters import CountChanges, StatisticsChanges, count_steps, distinct_steps, step_columns
from store.pool import Connection, Database, OnDatabase
from store.queries import load

COUNT_DUE = "count due"  # names of periodic tasks
ALIVE = "alive"


class PostgresOverdueWork:
    """Implements jobs' OverdueWork. `settings` returns the current settings, which have the hosts' quotas."""

    def __init__(self, database: Database, settings: Callable[[], SchedulerSettings]) -> None:
        self._database = database
        self._settings = settings

    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        found = await self._database.fetch("overdue_instances", now, limit)
        return [_overdue(row) for row in found]

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        first = distinct_steps(steps)

        async def write(connection: Connection) -> int:
            counts, statistics = CountChanges(), StatisticsChanges()
            made = await connection.fetch(load("time_out_instances"), *step_columns(first), now)
            if made:
                count_steps(made, first, counts, statistics)
                await connection.execute(load("mark_jobs"), sorted({row["job_id"] for row in made}))
                await counts.write(connection)
                await statistics.write(connection, self._settings())
            return len(made)

        return await self._database.in_transaction(write) if first else 0

    async def count_due(self, *, now: Instant) -> int:
        async def write(connection: Connection) -> int:
            since = await connection.fetchval(load("lock_duty"), COUNT_DUE)
            if since is not None and since - now >= CLOCK_WAS_AHEAD_S:
                await connection.execute(load("count_due"), now, since, -1)
                await connection.execute(load("set_duty_back"), COUNT_DUE, now)
                return 0
            counted: int = await connection.fetchval(load("count_due"), since or 0.0, now, 1)
            await connection.execute(load("note_duty"), COUNT_DUE, now)
            return counted

        return await self._database.in_transaction(write)


class PostgresOutages(OnDatabase):
    """Implements jobs' Outages."""

    async def note_alive(self, *, now: Instant, outage_at_least_s: Seconds, limit: int) -> OutageReport:
        """Record, in one transaction, being alive and the outage this ends; in another, shift some deadlines. Being
        alive waits for no batch: that batches are sent again, as after a pause, is a statement of its own.

        A record in the future by an outage's length comes from a wrong clock and would hide outages until then.
        """

        async def note(connection: Connection) -> bool:
            before: Instant | None = await connection.fetchval(load("lock_duty"), ALIVE)
            ahead = before is not None and before - now >= outage_at_least_s
            await connection.execute(load("set_duty_back" if ahead else "note_duty"), ALIVE, now)
            if before is None or elapsed_s(before, now) < outage_at_least_s:
                return False
            await connection.execute(load("insert_outage"), before, now)
            return True

        async def move(connection: Connection) -> OutageReport:
            return await _move_some(connection, limit)

        if await self._database.in_transaction(note):
            await self._database.execute("batches_resumed", now, None, None, None)
        return await self._database.in_transaction(move)


async def _move_some(connection: Connection, limit: int) -> OutageReport:
    outages = await connection.fetch(load("open_outages"))
    if not outages:
        return OutageReport()
    first = outages[0]
    by_s = elapsed_s(first["alive_until"], first["ended_at"])
    counted_until = await connection.fetchval(load("lock_duty"), COUNT_DUE)
    part = await connection.fetchrow(
        load("move_open_deadlines"),
        by_s,
        first["alive_until"],
        counted_until or 0.0,
        first["moved_down_to"],
        first["moved_down_to_id"],
        limit,
    )
    assert part is not None  # an aggregate
    over = part["looked_at"] < limit
    await connection.execute(
        load("note_outage"), first["outage_id"], part["moved"], part["timeout_at"], part["instance_id"], over
    )
    return OutageReport(by_s, part["moved"], more=not over or len(outages) > 1)


class PostgresHistory(OnDatabase):
    """Implements jobs' EndedWork: jobs of batches that ended long ago, by the month (UTC) in which the batch ended."""

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
        """Return all months that ever had data, earliest first."""
        return [_month(row) for row in await self._database.fetch("finished_months")]

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        """Return uploaded outputs, of the next `limit` instances after `after`."""
        found = await self._database.fetch("finished_outputs", month, after, limit)
        uploads = tuple(Upload(row["name"], row["nbytes"], row["md5"]) for row in found if row["name"] is not None)
        return OutputPage(uploads, InstanceId(found[-1]["instance_id"]) if found else None)

    async def purge_month(self, month: str, *, now: Instant) -> None:
        """Delete the month's jobs and instances permanently. Batches and their counters are kept."""

        async def drop(connection: Connection) -> None:
            await connection.execute(load("lock_history"))
            await connection.execute(load("drop_finished_month"), month, now)
            await connection.execute(load("purge_forecasts"), month)

        try:
            await self._database.in_transaction(drop)
        except asyncpg.LockNotAvailableError as error:
            raise UnavailableError(f"the history of {month} is being read: try again later") from error


async def _move(connection: Connection, found: Sequence[asyncpg.Record], before: Instant) -> tuple[int, int]:
    """Move the jobs of a batch that can no longer change. Return the numbers of jobs and instances moved.

    Rows are locked in the ledger's order, so a concurrent report has already marked its job or does not find it.
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


_month = rows.mapper(FinishedMonth)
_overdue = rows.mapper(Overdue, held=rows.held)
