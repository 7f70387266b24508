"""Runs what is not kept from before, keeps what comes, and says how long the rest may take."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from administration.simulations.process import duties
from benchmarks.robustness.kept import KeptRuns, digest_of
from domain.units import Instant
from simulator.run import Case, Ran
from simulator.sweep import run_here, run_on_dask, run_on_processes


def run_all(cases: Sequence[Case], kept: KeptRuns, *, processes: int, dask_address: str | None = None) -> list[Ran]:
    """Return what each case comes to. Cases that are the same are run once, and kept as soon as they are over."""
    missing = unkept(cases, kept)

    def keep(place: int, ran: Ran) -> None:
        kept.keep(missing[place], ran)

    if dask_address is not None:
        run_on_dask(missing, duties, Told(missing), keep, address=dask_address)
    elif processes == 1:
        run_here(missing, duties, Told(missing), keep)
    elif missing:
        run_on_processes(missing, duties, Told(missing), keep, processes=processes)
    every = [kept.find(case) for case in cases]
    if None in every:
        raise RuntimeError("a run was kept and is not found: the code changed meanwhile, so begin again")
    return [ran for ran in every if ran is not None]


def unkept(cases: Sequence[Case], kept: KeptRuns) -> list[Case]:
    """Those that are still to be run, each once."""
    once = {digest_of(case): case for case in cases}
    return [case for case in once.values() if kept.find(case) is None]


class Told:
    """Satisfies simulator.sweep.Watching: a line on standard error for each run that is over."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._over = 0
        self._began = time.perf_counter()

    def moved(self, place: int, at: Instant) -> None:
        """Only ends are told."""

    def over(self, place: int) -> None:
        self._over += 1
        case = self._cases[place]
        left_s = (time.perf_counter() - self._began) / self._over * (len(self._cases) - self._over)
        which = f"{case.scenario.name}, {case.rule}, seed {case.seed}"
        tell(f"{self._over} of {len(self._cases)} runs: {which}; about {left_s / 60.0:.0f} min left")


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
