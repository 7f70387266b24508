"""Runs what is not kept from before, keeps what comes, and says how long all of it may take."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.policy_quality.kept import KeptRuns, digest_of
from domain.units import HOUR_S, Instant
from operations.simulating import duties
from simulator.report import CLAIRVOYANT
from simulator.run import Case, Ran
from simulator.sweep import run_here, run_on_dask, run_on_processes

# CPU seconds of a run, in passing on a slow processor; nothing but the estimate goes by them.
SECONDS: Mapping[str, float] = {"small": 9.0, "department": 30.0, "large": 550.0}
BOUND_PART = 0.02  # of that takes the clairvoyant bound


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


def lasting(cases: Sequence[Case], processes: int) -> str:
    """
    >>> lasting([], 2)
    'nothing is to be run'
    """
    if not cases:
        return "nothing is to be run"
    together_s = sum(
        SECONDS.get(case.scenario.name, 0.0) * (BOUND_PART if case.rule == CLAIRVOYANT else 1.0) for case in cases
    )
    return f"{len(cases)} runs, about {together_s / processes / HOUR_S:.1f} h on {processes} processes"


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
