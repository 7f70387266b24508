"""How do the host statistics publish what they found? Whole tables by binary COPY, then one pointer is switched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import asyncpg
import msgspec
import numpy as np
import structlog

from domain.errors import UnavailableError
from domain.progress import note_progress
from domain.ranking import (
    PERCENTILE_FIELDS,
    CutPoints,
    HostStatisticsRun,
    RankedPart,
    StoredPercentile,
)
from domain.units import HostId, Instant
from store.binary_copy import HEADER, TRAILER, Table, encoded
from store.pool import CLOSE_S, LOST, Database, connect_patiently, lost_means_unavailable
from store.queries import load
from store.rows import Row
from store.rows import encoded as as_json
from store.watched import DEAD_S, connect_watched, kept_heard

RUN_LOCK = "a run of the host statistics"
RUNS_KEPT = 1000
COPY_TIMEOUT_S = 6 * 3600.0
GENERATION_FIELDS = (("generation", "i4"), *PERCENTILE_FIELDS)

log = structlog.get_logger("store")


@asynccontextmanager
async def bulk_connection(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of its own that may read and write whole tables. Raises UnavailableError."""
    connection = await connect_patiently(dsn)
    try:
        with lost_means_unavailable():
            await connection.execute(load("bulk_session"))
            yield connection
    except BaseException:
        connection.terminate()  # a COPY that is broken off ends here, not when the server has sent all of it
        raise
    await connection.close()


class PostgresNewGeneration:
    """A generation under way: tables are written by one connection, the switch is made by the one with the lock.

    So a run whose lock was lost, and that another may have overtaken, switches nothing.
    """

    def __init__(
        self,
        number: int,
        writer: asyncpg.Connection[asyncpg.Record],
        lock: asyncpg.Connection[asyncpg.Record],
        turn: asyncio.Lock,
        *,
        full: bool,
    ) -> None:
        self.number = number
        self._writer = writer
        self._lock = lock
        self._turn = turn  # of who asks something on the lock's connection
        self._full = full

    async def write(self, percentiles: Table) -> None:
        with lost_means_unavailable():
            await self._writer.copy_to_table(
                f"host_percentile_{self.number}",
                source=self._rows(percentiles),
                columns=[name for name, _ in GENERATION_FIELDS],
                format="binary",
                timeout=COPY_TIMEOUT_S,
            )

    async def _rows(self, percentiles: Table) -> AsyncIterator[bytes]:
        yield HEADER
        unknown = np.isnan(percentiles["x"])
        for chosen, nulls in ((~unknown, frozenset[str]()), (unknown, frozenset(("x", "y")))):
            table = percentiles.take(np.flatnonzero(chosen))
            for block in encoded(table, GENERATION_FIELDS, nulls=nulls, fixed={"generation": self.number}):
                note_progress()
                yield block
        yield TRAILER

    async def publish(self, cuts: Sequence[CutPoints], run: HostStatisticsRun) -> None:
        with lost_means_unavailable():
            if self._full:
                await self._writer.execute(load("attach_percentile_table"), self.number, timeout=COPY_TIMEOUT_S)
            await self._writer.executemany(load("insert_cut_points"), [_columns(self.number, cut) for cut in cuts])
            async with self._turn:
                switched = await self._lock.fetchval(
                    load("switch_generation"), self.number, run.full, run.started_at, run.seconds, as_json(run.parts)
                )
        if switched is None:
            raise UnavailableError("another run of the host statistics came in between: nothing was published")


class PostgresGenerations:
    """Satisfies hoststats' Generations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def new(self, *, now: Instant, full: bool) -> AsyncIterator[PostgresNewGeneration | None]:
        lock, turn = await connect_watched(self._database.dsn, silence_s=DEAD_S), asyncio.Lock()

        async def be_heard() -> None:
            async with turn:
                with lost_means_unavailable():
                    await lock.fetchval(load("connection_alive"))

        try:
            with lost_means_unavailable():
                mine = await lock.fetchval(load("try_duty_lock"), RUN_LOCK)
            if not mine:
                yield None
            else:
                async with kept_heard(be_heard), bulk_connection(self._database.dsn) as writer:
                    yield await self._begin(writer, lock, turn, now, full=full)
        except BaseException:
            lock.terminate()  # at once, whatever is under way; the server frees the lock when it notices
            raise
        with suppress(*LOST):
            await lock.close(timeout=CLOSE_S)  # returns when the server has freed the lock: the next run can begin

    async def _begin(
        self,
        writer: asyncpg.Connection[asyncpg.Record],
        lock: asyncpg.Connection[asyncpg.Record],
        turn: asyncio.Lock,
        now: Instant,
        *,
        full: bool,
    ) -> PostgresNewGeneration:
        await self._remove("broken_generations")
        number = await writer.fetchval(load("insert_generation"), now, full)
        if full:
            await writer.execute(load("add_percentile_table"), number)
        return PostgresNewGeneration(number, writer, lock, turn, full=full)

    async def remove_old(self) -> int:
        await self._database.fetch("remove_old_runs", RUNS_KEPT)
        return await self._remove("old_generations")

    async def _remove(self, which: str) -> int:
        removed = 0
        for row in await self._database.fetch(which):
            try:
                await self._database.fetch("remove_generation", row["generation"])
            except asyncpg.LockNotAvailableError:
                log.info("generation not removed: its percentiles are being read", generation=row["generation"])
                continue  # the next run tries again
            removed += 1
        return removed

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        return [_run(row) for row in await self._database.fetch("list_statistics_runs", limit)]

    async def percentiles_of(self, host_id: HostId) -> Sequence[StoredPercentile]:
        found = await self._database.fetch("percentiles_of_host", host_id)
        return [StoredPercentile(row["host_id"], row["app_version_id"], row["p"], row["x"], row["y"]) for row in found]


def _columns(generation: int, cut: CutPoints) -> tuple[object, ...]:
    """The arguments of sql/percentiles.sql (insert_cut_points)."""
    return (
        generation,
        cut.app_id,
        cut.processor_type,
        cut.n,
        list(cut.turnaround),
        list(cut.consecutive_valid),
        cut.score_mean,
        cut.tight_n,
        cut.tight_mean,
        cut.tight_sd,
        cut.retry_turnaround_s,
        cut.median_safe_runtime_s,
    )


def _run(row: Row) -> HostStatisticsRun:
    parts = msgspec.json.decode(row["parts"], type=tuple[RankedPart, ...])
    return HostStatisticsRun(row["generation"], row["is_full"], row["started_at"], row["seconds"], parts)
