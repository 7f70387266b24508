"""Checks whole tables for consistency, one statement (and snapshot) per check, and assigns new ids after a restore.

The checks use a separate connection, because the pool's planner settings favour look-ups by key. Results are bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from domain.checking import KnownFile, NewIds, StoredOutput, Wrong
from domain.units import InstanceId
from store.percentiles import bulk_connection
from store.pool import OnDatabase
from store.queries import load
from store.rows import mapper

COUNTERS = "counters"
QUESTIONS = {  # name of the check -> query
    "jobs that are over": "check_ended_jobs",
    "jobs that are open": "check_open_jobs",
    "nothing is there twice": "check_doubled",
    "batches": "check_batches",
    "outputs of results": "check_outputs",
    "rows without an owner": "check_orphans",
    "logical times and usage": "check_times",
    "credit": "check_credit",
    COUNTERS: "counters_that_differ",
}


class PostgresChecking(OnDatabase):
    """Opens the connection for an inspection."""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[CheckingSession]:
        """Open a session for one inspection. Raises UnavailableError."""
        async with bulk_connection(self._database.dsn) as connection:
            yield CheckingSession(connection)


class CheckingSession:
    """Runs the queries of one inspection. Every method may raise UnavailableError."""

    questions: Sequence[str] = tuple(QUESTIONS)

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection

    async def ask(self, question: str, *, limit: int) -> Sequence[Wrong]:
        """Return at most `limit` violations."""
        query = load(QUESTIONS[question])
        if question == COUNTERS:
            found = await self._connection.fetch(query)
            return [
                Wrong(f"batch {row['batch_id']}", f"counted {row['counted']}, rows say {row['expected']}")
                for row in found[:limit]
            ]
        return [_wrong(row) for row in await self._connection.fetch(query, limit)]

    async def outputs(self, *, limit: int) -> AsyncIterator[Sequence[StoredOutput]]:
        """Yield pages of about `limit` recorded outputs, first from the current tables, then from the history."""
        after, name = 0, ""
        while rows := await self._connection.fetch(load("check_uploads_page"), after, name, limit):
            yield [_output(row) for row in rows]
            after, name = rows[-1]["instance_id"], rows[-1]["name"]
        after = 0
        while rows := await self._connection.fetch(load("check_finished_uploads_page"), after, limit):
            yield [_output(row) for row in rows if row["name"] is not None]
            after = rows[-1]["instance_id"]

    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]:
        """Return the records of files given by name and instance, in any order."""
        names, instance_ids = [name for name, _ in files], [instance_id for _, instance_id in files]
        return [_known(row) for row in await self._connection.fetch(load("check_files_known"), names, instance_ids)]


_wrong = mapper(Wrong)
_output = mapper(StoredOutput)
_known = mapper(KnownFile)


INT_STEP = 1_000_000  # hosts and similar; clients keep 31 bits, which is enough for 2,000 restores


class PostgresRestoring(OnDatabase):
    """Prepares a restored database for service. Every method may raise UnavailableError."""

    async def known(self, files: Sequence[tuple[str, InstanceId]]) -> Sequence[KnownFile]:
        """Return the records of files given by name and instance, in any order."""
        names, instance_ids = [name for name, _ in files], [instance_id for _, instance_id in files]
        return [_known(row) for row in await self._database.fetch("check_files_known", names, instance_ids)]

    async def serving(self) -> int:
        """Return the number of sessions of processes that serve the project."""
        row = await self._database.fetch_first("sessions_that_lock")
        return int(row["sessions"])

    async def renumber(self, *, beyond: int, step: int) -> NewIds:
        """Advance sequences past `beyond` by at least `step`, and renumber unsent instances, in one transaction."""
        async with self._database.transaction() as connection:
            greatest = await connection.fetchval(load("greatest_instance_id"))
            behind = max(int(greatest), beyond) + step
            await connection.fetch(load("forget_uploads_of_unsent"))
            unsent = await connection.fetchval(load("renumber_unsent"), behind)
            advanced = await connection.fetch(load("advance_sequences"), behind + unsent, step, INT_STEP)
        return NewIds(unsent, len(advanced))
