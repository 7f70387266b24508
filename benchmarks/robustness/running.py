"""Runs the cases without kept results, keeps their results, and estimates the remaining time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from administration.simulations.process import simulated_tasks
from benchmarks.robustness.kept import KeptRuns, digest_of
from benchmarks.running import say
from domain.units import Instant
from simulator.run import Case, Ran
from simulator.sweep import run_here, run_on_dask, run_on_processes


def run_all(cases: Sequence[Case], kept: KeptRuns, *, processes: int, dask_address: str | None = None) -> list[Ran]:
    """Return the result of each case. Equal cases run only once; results are kept as soon as a case finishes."""
    missing = unkept(cases, kept)

    def keep(place: int, ran: Ran) -> None:
        kept.keep(missing[place], ran)

    if dask_address is not None:
        run_on_dask(missing, simulated_tasks, Told(missing), keep, address=dask_address)
    elif processes == 1:
        run_here(missing, simulated_tasks, Told(missing), keep)
    elif missing:
        run_on_processes(missing, simulated_tasks, Told(missing), keep, processes=processes)
    every = [kept.find(case) for case in cases]
    if None in every:
        raise RuntimeError("a kept run is missing because the code changed during the comparison; start again")
    return [ran for ran in every if ran is not None]


def unkept(cases: Sequence[Case], kept: KeptRuns) -> list[Case]:
    """Return the cases that remain to be run, without duplicates."""
    once = {digest_of(case): case for case in cases}
    return [case for case in once.values() if kept.find(case) is None]


class Told:
    """Satisfies simulator.sweep.Watching: prints a line on standard error for each finished run."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._over = 0
        self._began = time.perf_counter()

    def moved(self, place: int, at: Instant) -> None:
        """Ignore progress within a run."""

    def over(self, place: int) -> None:
        self._over += 1
        case = self._cases[place]
        left_s = (time.perf_counter() - self._began) / self._over * (len(self._cases) - self._over)
        which = f"{case.scenario.name}, {case.rule}, seed {case.seed}"
        say(f"{self._over} of {len(self._cases)} runs: {which}; about {left_s / 60.0:.0f} min left")
