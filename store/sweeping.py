"""Overdue work and outages in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from domain.settings import SchedulerSettings
from domain.settlement import InstanceStep, Overdue
from domain.units import Instant, Seconds
from store import work_rows
from store.counters import CountChanges
from store.pool import Connection, Database
from store.queries import load
from store.statistics import StatisticsChanges
from store.steps import count_steps, distinct_steps, step_columns

COUNT_DUE = "count due"  # names of duties
ALIVE = "alive"


class PostgresOverdueWork:
    """Satisfies jobs' OverdueWork. `settings` are those of the moment, for hosts' quotas."""

    def __init__(self, database: Database, settings: Callable[[], SchedulerSettings]) -> None:
        self._database = database
        self._settings = settings

    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        found = await self._database.fetch("overdue_instances", now, limit)
        return [Overdue(work_rows.held(row), row["fpops_est_flop"]) for row in found]

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
            counted: int = await connection.fetchval(load("count_due"), since or 0.0, now)
            await connection.execute(load("note_duty"), COUNT_DUE, now)
            return counted

        return await self._database.in_transaction(write)


class PostgresOutages:
    """Satisfies jobs' Outages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def heartbeat(self, *, now: Instant) -> Instant | None:
        async def write(connection: Connection) -> Instant | None:
            before: Instant | None = await connection.fetchval(load("lock_duty"), ALIVE)
            await connection.execute(load("note_duty"), ALIVE, now)
            return before

        return await self._database.in_transaction(write)

    async def move_open_deadlines(self, *, by_s: Seconds, alive_until: Instant) -> int:
        async def write(connection: Connection) -> int:
            counted_until = await connection.fetchval(load("lock_duty"), COUNT_DUE)
            moved: int = await connection.fetchval(load("move_open_deadlines"), by_s, alive_until, counted_until or 0.0)
            return moved

        return await self._database.in_transaction(write)
