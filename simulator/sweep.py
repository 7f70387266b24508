"""Many runs: seeds by rules by settings, here one after the other, on processes, or on a Dask cluster.

Each run is made from its case alone, so that it does not matter where; results come in the order of the cases.
"""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from domain.errors import InvalidInputError, MusterError
from domain.settings import DeadlineRule
from domain.units import DAY_S, Instant
from simulator.metrics import medians
from simulator.report import Comparison, Ends
from simulator.run import Case, Ran, run_case
from simulator.scenario import FileScenario
from simulator.services import MoreDuties

TELL_EVERY_S = DAY_S / 4.0  # of simulated time
LOOK_S = 0.5

Told = tuple[int, Instant]  # a case by its place, and how far it has come


class NoDaskError(MusterError):
    """A Dask cluster is used with the extra `dask`, which is not installed: pip install "muster[dask]"."""


class Watching(Protocol):
    """Hears of runs as they go."""

    def moved(self, place: int, at: Instant) -> None: ...

    def over(self, place: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Unwatched:
    """Satisfies Watching."""

    def moved(self, place: int, at: Instant) -> None:
        """Nobody looks."""

    def over(self, place: int) -> None:
        """Nobody looks."""


# A delay bound, or the proposal's pseudo-code, is all there is to these rules: they copy no last jobs.
NO_COPIES: Mapping[str, object] = {"lifecycle.tail_overhead_fraction": 0.0}
LEFT_OUT: Mapping[str, Mapping[str, object]] = {
    str(DeadlineRule.FIXED): NO_COPIES,
    str(DeadlineRule.PROPOSAL): NO_COPIES,
}


def cases_of(
    scenario: FileScenario, *, rules: Iterable[str], seeds: Iterable[int], settings: Mapping[str, object]
) -> list[Case]:
    """Every rule with every seed, rule by rule.

    What a rule leaves out (`LEFT_OUT`) is left out unless the scenario or `settings` has it. Raises InvalidInputError
    for a scenario in which nobody submits anything.
    """
    if not scenario.batches:
        raise InvalidInputError("scenario", "at least one [[batch]] table, or a workload log (--trace)", scenario.name)
    chosen = list(seeds)
    of_rules = {rule: {**LEFT_OUT.get(rule, {}), **scenario.settings, **settings} for rule in rules}
    return [Case(scenario, seed, rule, given) for rule, given in of_rules.items() for seed in chosen]


def compared(cases: Sequence[Case], ran: Sequence[Ran]) -> Comparison:
    """The medians over seeds of cases that differ in rule and seed alone."""
    rules = list(dict.fromkeys(case.rule for case in cases))
    by_rule = {
        rule: medians([one.figures for case, one in zip(cases, ran, strict=True) if case.rule == rule])
        for rule in rules
    }
    seeds = len({case.seed for case in cases})
    told = {rule: _ends(rule, cases, ran) for rule in rules}
    ends = {rule: one for rule, one in told.items() if one.jobs}
    return Comparison(cases[0].scenario.name, seeds, by_rule, ends)


def _ends(rule: str, cases: Sequence[Case], ran: Sequence[Ran]) -> Ends:
    """Of the urgent batches of all seeds under one rule. The clairvoyant bound tells of no job."""
    ends_s: list[float] = []
    jobs = 0
    for case, one in zip(cases, ran, strict=True):
        if case.rule == rule:
            sizes = {plan.name: plan.jobs for plan in case.scenario.batches}
            jobs += sum(sizes[name] for name in one.ends_s)
            ends_s.extend(end_s for of_batch in one.ends_s.values() for end_s in of_batch)
    return Ends(tuple(ends_s), jobs)


Keep = Callable[[int, Ran], None]  # hears of a run that is over, by its case's place, before the others are


def keep_nothing(place: int, ran: Ran) -> None:
    """All of them come at the end."""


def run_here(
    cases: Sequence[Case], more_duties: MoreDuties, watching: Watching, keep: Keep = keep_nothing
) -> list[Ran]:
    """One after the other in this process."""
    found = []
    for place, case in enumerate(cases):
        found.append(run_case(case, more_duties, seldom(partial(watching.moved, place))))
        keep(place, found[-1])
        watching.over(place)
    return found


def run_on_processes(
    cases: Sequence[Case], more_duties: MoreDuties, watching: Watching, keep: Keep = keep_nothing, *, processes: int
) -> list[Ran]:
    """As many at a time as there are processes. What one raises is raised, and the others are given up."""
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[Told] = context.Queue()
    with ProcessPoolExecutor(processes, context, initializer=_remember, initargs=(told,)) as pool:
        futures = [pool.submit(_run_and_tell, place, case, more_duties) for place, case in enumerate(cases)]
        try:
            _wait_for(futures, told, watching, keep)
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_on_dask(
    cases: Sequence[Case], more_duties: MoreDuties, watching: Watching, keep: Keep = keep_nothing, *, address: str
) -> list[Ran]:
    """On the workers of the cluster whose scheduler is at `address`, where Muster must be installed.

    Raises NoDaskError, and OSError when there is nobody.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415  an extra that may be missing
    except ImportError as error:
        raise NoDaskError from error
    with Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]  # Dask says no types
        futures = [client.submit(run_unwatched, case, more_duties, pure=False) for case in cases]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]  # nor here
            keep(places[future.key], future.result())
            watching.over(places[future.key])
        return [future.result() for future in futures]


def run_unwatched(case: Case, more_duties: MoreDuties) -> Ran:
    """A run somewhere else."""
    return run_case(case, more_duties, unwatched)


def unwatched(at: Instant) -> None:
    """Nobody looks."""


def seldom(tell: Callable[[Instant], None]) -> Callable[[Instant], None]:
    """The same, told a few times a simulated day only."""
    told_at = -TELL_EVERY_S

    def moved(at: Instant) -> None:
        nonlocal told_at
        if at - told_at >= TELL_EVERY_S:
            told_at = at
            tell(at)

    return moved


# ------------------------------------------------------------ in a process of the pool

_told: multiprocessing.Queue[Told] | None = None


def _remember(told: multiprocessing.Queue[Told]) -> None:
    global _told  # noqa: PLW0603  what a pool gives its processes has no other place
    _told = told


def _run_and_tell(place: int, case: Case, more_duties: MoreDuties) -> Ran:
    told = _told
    assert told is not None
    return run_case(case, more_duties, seldom(lambda at: told.put((place, at))))


# ------------------------------------------------------------ in this one


def _wait_for(
    futures: Sequence[Future[Ran]], told: multiprocessing.Queue[Told], watching: Watching, keep: Keep
) -> None:
    places = {future: place for place, future in enumerate(futures)}
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        _pass_on(told, watching)
        for future in done:
            keep(places[future], future.result())
            watching.over(places[future])


def _pass_on(told: multiprocessing.Queue[Told], watching: Watching) -> None:
    while True:
        try:
            place, at = told.get_nowait()
        except queue.Empty:
            return
        watching.moved(place, at)
