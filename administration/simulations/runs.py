"""Runs simulations requested by pages and the API, each in its own process at the lowest priority.

Progress is stored in the database, because any worker may be queried for it. If a row has not been updated for a
minute, its process has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from domain.clock import Clock
from domain.errors import ConflictError, UnavailableError
from domain.units import later
from domain.views import SILENT_S, SimulationState
from store.process_reports import PostgresSimulations

if TYPE_CHECKING:
    from simulator.run import Case, Ran

PROGRAM = (sys.executable, "-m", "administration.simulations.process")
MOST_LISTED = 20  # maximum number of simulations listed, latest first
AT_ONCE = 1  # in the whole cluster, because each takes a CPU from the workers
NOTE_EVERY_S = 1.0
LINE_BYTES = 2**24  # maximum length of a line, which may contain a result

log = structlog.get_logger()


class RequestedRun(Protocol):
    """A run. `asked` is shown to users and contains at least `scenario`, `rules`, `seeds` and `changes`."""

    @property
    def asked(self) -> Mapping[str, object]: ...
    @property
    def cases(self) -> Sequence[Case]: ...

    def result(self, ran: Sequence[Ran]) -> dict[str, object]:
        """Return the result from the completed cases, given in order."""
        ...


class OutputLine(msgspec.Struct):
    """A line of the process's output."""

    done_fraction: float | None = None
    result: dict[str, object] | None = None
    failure: str | None = None


class SimulationsBusyError(ConflictError):
    """The maximum number of simulations is already running: wait for one to end, or stop one."""


class SimulationRuns:
    """Runs a worker's simulations, and ends them when the worker closes."""

    def __init__(self, simulations: PostgresSimulations, clock: Clock) -> None:
        self._simulations = simulations
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def check_free(self) -> None:
        """Raise SimulationsBusyError if no simulation can start; call before long preparations."""
        now = self._clock.now()
        latest = await self._simulations.simulations(MOST_LISTED)
        if sum(one.state is SimulationState.RUNNING and not one.is_lost(now) for one in latest) >= AT_ONCE:
            raise SimulationsBusyError

    async def start(self, work: RequestedRun, *, who: str) -> int:
        """Start a simulation and return its id. Raises SimulationsBusyError."""
        packed = await asyncio.to_thread(pickle.dumps, work)
        now = self._clock.now()
        simulation_id = await self._simulations.add(
            work.asked, who=who, now=now, heard_since=later(now, -SILENT_S), most=AT_ONCE
        )
        if simulation_id is None:
            raise SimulationsBusyError
        task = asyncio.create_task(self._run(simulation_id, packed), name=f"simulation {simulation_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return simulation_id

    async def close(self) -> None:
        """End all running simulations."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait(self) -> None:
        """Wait until all simulations have ended."""
        await asyncio.gather(*self._tasks)

    async def _run(self, simulation_id: int, packed: bytes) -> None:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
            start_new_session=True,
            preexec_fn=_last,
        )
        try:
            await self._follow(simulation_id, packed, process)
        except UnavailableError as error:
            log.warning("simulation abandoned", simulation=simulation_id, why=str(error))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _follow(self, simulation_id: int, packed: bytes, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(packed)
        process.stdin.close()
        line_read, noted_s = OutputLine(), self._clock.monotonic()
        async for line in process.stdout:
            line_read = msgspec.json.decode(line, type=OutputLine)
            if line_read.done_fraction is None:
                break
            if self._clock.monotonic() - noted_s >= NOTE_EVERY_S:
                noted_s = self._clock.monotonic()
                if not await self._simulations.note(simulation_id, line_read.done_fraction, now=self._clock.now()):
                    return  # the simulation was cancelled
        await self._end(simulation_id, line_read)

    async def _end(self, simulation_id: int, line_read: OutputLine) -> None:
        now = self._clock.now()
        if line_read.result is not None:
            await self._simulations.end(simulation_id, SimulationState.DONE, now=now, result=line_read.result)
            return
        why = line_read.failure or "its process ended early"
        await self._simulations.end(simulation_id, SimulationState.FAILED, now=now, failure=why)


def _last() -> None:
    """Set the lowest priority, so that client requests come first."""
    os.nice(19)
