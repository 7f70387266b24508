"""Stores status reports of processes, and requested simulations, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.units import Instant, later
from domain.views import ProcessReport, Simulation, SimulationState
from store import rows
from store.pool import Connection, OnDatabase
from store.queries import load
from store.rows import mapper

FORGOTTEN_AFTER_S = 86400.0
SIMULATIONS_KEPT = 100


class PostgresProcessReports(OnDatabase):
    """Stores the reports that each process of the cluster makes every few seconds."""

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        """Replace the process's last report, and delete processes that have been silent for a day."""

        async def write(connection: Connection) -> None:
            await connection.execute(load("note_process"), name, kind, now, rows.encoded(report))
            await connection.execute(load("forget_processes"), later(now, -FORGOTTEN_AFTER_S))

        await self._database.in_transaction(write)

    async def since(self, at: Instant, *, kind: str | None = None) -> Sequence[ProcessReport]:
        """Return the reports since `at`, of one kind or all, ordered by kind and name."""
        return [_report(row) for row in await self._database.fetch("list_processes", at, kind)]

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """Return the latest deadline of each periodic task, from processes that have reported since `since`."""
        return {row["name"]: row["deadline_at"] for row in await self._database.fetch("duty_deadlines", since)}

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]:
        """Return the `failed` part of the last reports of workers that stopped in this period, ordered by name."""
        found = await self._database.fetch("failures_of_gone", since, before)
        return [rows.decoded_object(row["failed"]) for row in found]


class PostgresSimulations(OnDatabase):
    """Stores simulations requested through the console or the API."""

    async def add(
        self, asked: Mapping[str, object], *, who: str, now: Instant, heard_since: Instant, most: int
    ) -> int | None:
        """Return its id, None if `most` other simulations are running and have reported since `heard_since`."""

        async def write(connection: Connection) -> int | None:
            arguments = (now, who, rows.encoded(asked), heard_since, most)
            added: int | None = await connection.fetchval(load("insert_simulation"), *arguments)
            await connection.execute(load("forget_simulations"), SIMULATIONS_KEPT)
            return added

        return await self._database.in_transaction(write)

    async def note(self, simulation_id: int, done_fraction: float, *, now: Instant) -> bool:
        """Record progress. Return False if the simulation is no longer running because it was cancelled."""
        return await self._database.fetch_one("note_simulation", simulation_id, now, done_fraction) is not None

    async def end(
        self,
        simulation_id: int,
        state: SimulationState,
        *,
        now: Instant,
        result: Mapping[str, object] | None = None,
        failure: str | None = None,
    ) -> bool:
        """Record the end. Return False if the simulation is no longer running."""
        document = None if result is None else rows.encoded(result)
        found = await self._database.fetch_one("end_simulation", simulation_id, now, state, document, failure)
        return found is not None

    async def simulations(self, limit: int) -> Sequence[Simulation]:
        """Return the simulations, newest first, without results."""
        return [_simulation(row) for row in await self._database.fetch("list_simulations", limit)]

    async def simulation(self, simulation_id: int) -> Simulation:
        """Raises NotFoundError."""
        return _simulation(await self._database.fetch_known("simulation_by_id", simulation_id, kind="simulation"))


_report = mapper(ProcessReport, report=lambda row: rows.decoded_object(row["report"]))
_simulation = mapper(
    Simulation,
    asked=lambda row: rows.decoded_object(row["asked"]),
    result=lambda row: None if row["result"] is None else rows.decoded_object(row["result"]),
)
