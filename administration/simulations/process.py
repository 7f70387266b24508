"""The process that runs one requested simulation, and the periodic tasks used in simulations.

It reads the run, pickled by the worker, from standard input, and writes one JSON line per step to standard output:

    {"done_fraction": 0.25}
    {"result": {...}}      or      {"failure": "..."}
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import IO

import msgspec

from administration.gate_relaxation import GateRelaxer, GateReport
from administration.simulations.runs import RequestedRun
from domain.clock import Clock
from domain.errors import MusterError
from domain.units import Instant, Seconds
from simulator.run import Case
from simulator.services import AnyStore, CatalogueOfTheMoment, SimulatedTask
from simulator.sweep import run_here

LEAST_STEP = 0.002  # of the progress; far more often than a run counts as lost
RELAX_EVERY_S = Seconds(600.0)  # simulated clients connect every few hours, so a tenth of the usual rate is enough


def simulated_tasks(store: AnyStore, catalogue: CatalogueOfTheMoment, clock: Clock) -> Sequence[SimulatedTask]:
    """Implements simulator.services.MoreTasks."""
    relaxer = GateRelaxer(store.insight, store.notes, catalogue.catalogue, clock)

    def changes(report: object) -> bool:
        """Return whether gates are relaxed, or were until now."""
        relaxed = isinstance(report, GateReport) and report.relaxed
        return bool(relaxed) or any(cuts.relaxed for cuts in catalogue.catalogue().cut_points.values())

    return [SimulatedTask("gates", relaxer.run_once, lambda: RELAX_EVERY_S, changes)]


class ProgressWriter:
    """Implements simulator.sweep.Watching: reports the progress of all runs together.

    Progress is the share of jobs that have ended, because jobs take the time: a day without any costs little.
    """

    def __init__(self, cases: Sequence[Case], out: IO[str]) -> None:
        self._out = out
        self._jobs = [max(1, sum(plan.jobs for plan in case.scenario.batches)) for case in cases]
        self._done = [0.0] * len(cases)
        self._written = 0.0

    def moved(self, place: int, at: Instant) -> None:
        """Ignore the simulated time."""

    def count_jobs(self, place: int, jobs: int) -> None:
        self._done[place] = jobs / self._jobs[place]
        if self._share() - self._written >= LEAST_STEP:
            self._write()

    def over(self, place: int) -> None:
        self._done[place] = 1.0
        self._write()

    def _share(self) -> float:
        return sum(self._done) / len(self._done)

    def _write(self) -> None:
        self._written = self._share()
        write_line(self._out, {"done_fraction": self._written})


def write_line(out: IO[str], message: Mapping[str, object]) -> None:
    out.write(msgspec.json.encode(message).decode() + "\n")
    out.flush()


def main(given: IO[bytes], out: IO[str]) -> None:
    """Run the requested simulation."""
    try:
        work: RequestedRun = pickle.loads(given.read())  # noqa: S301  written by the worker that started this process
        progress = ProgressWriter(work.cases, out)
        write_line(
            out,
            {"result": work.result(run_here(work.cases, simulated_tasks, progress, count_jobs=progress.count_jobs))},
        )
    except MusterError as error:
        write_line(out, {"failure": str(error)})


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout)
