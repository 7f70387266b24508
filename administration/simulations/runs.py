"""Runs simulations that pages and the API ask for: each in a process of its own, at the lowest priority.

Any worker may be asked how far one is, so what is known of it stands in a row of the database; a row that nobody has
renewed for a minute is of a process that is gone.
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
from domain.units import Instant, later
from domain.views import SILENT_S, Simulation, SimulationState

if TYPE_CHECKING:
    from simulator.run import Case, Ran

PROGRAM = (sys.executable, "-m", "administration.simulations.process")
LOOKED_AT = 20  # of the latest
MOST_HOSTS = 5000
SOME_SEEDS, SOME_HOSTS, SOME_DAYS = 3, 500, 14.0  # of thresholds tried on the project itself
MOST_DAYS = 365.0
AT_ONCE = 1  # in the whole cluster: they take a CPU each from the workers
NOTE_EVERY_S = 1.0
LINE_BYTES = 2**24  # a result

log = structlog.get_logger()


class RequestedRun(Protocol):
    """What is to be run. `asked` is what people are told of it: `scenario`, `rules`, `seeds` and `changes` at least."""

    @property
    def asked(self) -> Mapping[str, object]: ...
    @property
    def cases(self) -> Sequence[Case]: ...

    def result(self, ran: Sequence[Ran]) -> dict[str, object]:
        """What the cases, run in their order, came to."""
        ...


class Simulations(Protocol):
    """Simulations that were asked for at the console or over the API."""

    async def add(
        self, asked: Mapping[str, object], *, who: str, now: Instant, heard_since: Instant, most: int
    ) -> int | None:
        """Its id; None where `most` are under way that were heard from since."""
        ...

    async def note(self, simulation_id: int, done_fraction: float, *, now: Instant) -> bool:
        """False when it is not under way any more: it was cancelled."""
        ...

    async def end(
        self,
        simulation_id: int,
        state: SimulationState,
        *,
        now: Instant,
        result: Mapping[str, object] | None = None,
        failure: str | None = None,
    ) -> bool:
        """False when it is not under way any more."""
        ...

    async def simulations(self, limit: int) -> Sequence[Simulation]:
        """Newest first, without their results."""
        ...

    async def simulation(self, simulation_id: int) -> Simulation:
        """Raises NotFoundError."""
        ...


class Said(msgspec.Struct):
    """A line of the process."""

    done_fraction: float | None = None
    result: dict[str, object] | None = None
    failure: str | None = None


class SimulationsBusyError(ConflictError):
    """As many simulations as may be are running: wait for the end of one, or stop it."""


class SimulationRuns:
    """One per worker. Leaving it ends what it runs."""

    def __init__(self, simulations: Simulations, clock: Clock) -> None:
        self._simulations = simulations
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def check_free(self) -> None:
        """Before long preparations. Raises SimulationsBusyError."""
        now = self._clock.now()
        latest = await self._simulations.simulations(LOOKED_AT)
        if sum(one.state is SimulationState.RUNNING and not one.is_lost(now) for one in latest) >= AT_ONCE:
            raise SimulationsBusyError

    async def start(self, work: RequestedRun, *, who: str) -> int:
        """Its number. Raises SimulationsBusyError."""
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
        """End what is running."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait(self) -> None:
        """Until nothing runs any more."""
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
            log.warning("simulation given up", simulation=simulation_id, why=str(error))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _follow(self, simulation_id: int, packed: bytes, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(packed)
        process.stdin.close()
        said, noted_s = Said(), self._clock.monotonic()
        async for line in process.stdout:
            said = msgspec.json.decode(line, type=Said)
            if said.done_fraction is None:
                break
            if self._clock.monotonic() - noted_s >= NOTE_EVERY_S:
                noted_s = self._clock.monotonic()
                if not await self._simulations.note(simulation_id, said.done_fraction, now=self._clock.now()):
                    return  # it was cancelled
        await self._end(simulation_id, said)

    async def _end(self, simulation_id: int, said: Said) -> None:
        now = self._clock.now()
        if said.result is not None:
            await self._simulations.end(simulation_id, SimulationState.DONE, now=now, result=said.result)
            return
        why = said.failure or "the process that ran it ended before its time"
        await self._simulations.end(simulation_id, SimulationState.FAILED, now=now, failure=why)


def _last() -> None:
    """What clients ask for comes first."""
    os.nice(19)
