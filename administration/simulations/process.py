"""Runs a simulation in a process of its own, and lists the periodic tasks of administration for simulations.

What is run comes on standard input, pickled by the worker; on standard output there is one JSON line per step.

    {"done_fraction": 0.25}
    {"result": {...}}      or      {"failure": "..."}
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import IO

import msgspec

from administration.gate_relaxation import GateRelaxer
from administration.simulations.runs import RequestedRun
from domain.clock import Clock
from domain.errors import MusterError
from domain.units import Instant, Seconds
from simulator.run import Case
from simulator.services import AnyStore, CatalogueOfTheMoment, SimulatedTask
from simulator.sweep import run_here

RELAX_EVERY_S = Seconds(600.0)  # clients call every few hours: ten times less often than in production is enough


def simulated_tasks(store: AnyStore, catalogue: CatalogueOfTheMoment, clock: Clock) -> Sequence[SimulatedTask]:
    """Satisfies simulator.services.MoreTasks."""
    relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)
    return [SimulatedTask("gates", relaxer.run_once, lambda: RELAX_EVERY_S, updates_catalogue=bool)]


class Telling:
    """Satisfies simulator.sweep.Watching: says how far all runs together are."""

    def __init__(self, cases: Sequence[Case], out: IO[str]) -> None:
        self._cases = cases
        self._out = out
        self._done = [0.0] * len(cases)

    def moved(self, place: int, at: Instant) -> None:
        scenario = self._cases[place].scenario
        self._done[place] = min(1.0, (at - scenario.starts_at) / scenario.horizon_s)
        tell(self._out, {"done_fraction": sum(self._done) / len(self._done)})

    def over(self, place: int) -> None:
        self._done[place] = 1.0
        tell(self._out, {"done_fraction": sum(self._done) / len(self._done)})


def tell(out: IO[str], said: Mapping[str, object]) -> None:
    out.write(msgspec.json.encode(said).decode() + "\n")
    out.flush()


def main(given: IO[bytes], out: IO[str]) -> None:
    """Run what is asked for."""
    try:
        work: RequestedRun = pickle.loads(given.read())  # noqa: S301  of the worker that started this process
        tell(out, {"result": work.result(run_here(work.cases, simulated_tasks, Telling(work.cases, out)))})
    except MusterError as error:
        tell(out, {"failure": str(error)})


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout)
