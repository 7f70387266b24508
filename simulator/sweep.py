"""Performs many runs (seeds x rules x combinations of settings) in this process, a pool of processes, or with Dask.

Each run depends only on its case, so it can run anywhere. Results are in the order of the cases.
"""

from __future__ import annotations

import math
import multiprocessing
import queue
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Protocol

from domain.deadline_rules import CLAIRVOYANT
from domain.errors import InvalidInputError, MusterError
from domain.settings import DeadlineRule, Settings
from domain.units import DAY_S, Instant
from simulator.frontier import Combination, Swept, Tried
from simulator.metrics import medians
from simulator.report import BatchEnds, RuleComparison
from simulator.run import RULE, Case, Ran, run_case
from simulator.scenario import FileScenario
from simulator.services import MoreTasks

TELL_EVERY_S = DAY_S / 4.0  # simulated time
CHECK_S = 0.5

Told = tuple[int, Instant]  # a case's position and its simulated time


class NoDaskError(MusterError):
    """A Dask cluster needs the extra `dask`, which is not installed: pip install "muster[dask]"."""


class Watching(Protocol):
    """Receives the progress of runs."""

    def moved(self, place: int, at: Instant) -> None: ...

    def over(self, place: int) -> None: ...


# These rules are only a delay bound, or the proposal's pseudo-code, which do not copy the last jobs of a batch.
NO_COPIES: Mapping[str, object] = {"lifecycle.tail_overhead_fraction": 0.0}
LEFT_OUT: Mapping[str, Mapping[str, object]] = {
    str(DeadlineRule.FIXED): NO_COPIES,
    str(DeadlineRule.PROPOSAL): NO_COPIES,
}


def cases_of(
    scenario: FileScenario, *, rules: Iterable[str], seeds: Iterable[int], settings: Mapping[str, object]
) -> list[Case]:
    """Return a case for each combination of rule and seed, ordered by rule.

    Features not in a rule (`LEFT_OUT`) are disabled unless the scenario or `settings` enables them. Raises
    InvalidInputError for a scenario without batches.
    """
    if not scenario.batches:
        raise InvalidInputError("scenario", "at least one [[batch]] table, or a workload log (--trace)", scenario.name)
    chosen = list(seeds)
    of_rules = {rule: {**LEFT_OUT.get(rule, {}), **scenario.settings, **settings} for rule in rules}
    return [Case(scenario, seed, rule, given) for rule, given in of_rules.items() for seed in chosen]


def compared(cases: Sequence[Case], ran: Sequence[Ran]) -> RuleComparison:
    """Return the medians over seeds of cases that differ only in rule and seed."""
    rules = list(dict.fromkeys(case.rule for case in cases))
    by_rule = {
        rule: medians([one.figures for case, one in zip(cases, ran, strict=True) if case.rule == rule])
        for rule in rules
    }
    seeds = len({case.seed for case in cases})
    told = {rule: _ends(rule, cases, ran) for rule in rules}
    ends = {rule: one for rule, one in told.items() if one.jobs}
    return RuleComparison(cases[0].scenario.name, seeds, by_rule, ends)


def _ends(rule: str, cases: Sequence[Case], ran: Sequence[Ran]) -> BatchEnds:
    """Return the job ends of AFAP batches under one rule, over all seeds. The clairvoyant bound has none."""
    ends_s: list[float] = []
    jobs = 0
    for case, one in zip(cases, ran, strict=True):
        if case.rule == rule:
            sizes = {plan.name: plan.jobs for plan in case.scenario.batches}
            jobs += sum(sizes[name] for name in one.ends_s)
            ends_s.extend(end_s for of_batch in one.ends_s.values() for end_s in of_batch)
    return BatchEnds(tuple(ends_s), jobs)


Keep = Callable[[int, Ran], None]  # called with the case's position and the run as soon as it finishes


def keep_nothing(place: int, ran: Ran) -> None:
    """Ignore a finished run; all runs are returned at the end."""


CountJobsOf = Callable[[int, int], None]  # called with the case's position and the number of its jobs that have ended


def count_nothing(place: int, jobs: int) -> None:
    """Ignore the number of ended jobs."""


def run_here(
    cases: Sequence[Case],
    more_tasks: MoreTasks,
    watching: Watching,
    keep: Keep = keep_nothing,
    *,
    count_jobs: CountJobsOf = count_nothing,
) -> list[Ran]:
    """Run the cases one after the other in this process."""
    found = []
    for place, case in enumerate(cases):
        watch = seldom(partial(watching.moved, place))
        found.append(run_case(case, more_tasks, watch, partial(count_jobs, place)))
        keep(place, found[-1])
        watching.over(place)
    return found


def run_on_processes(
    cases: Sequence[Case], more_tasks: MoreTasks, watching: Watching, keep: Keep = keep_nothing, *, processes: int
) -> list[Ran]:
    """Run the cases in `processes` processes. An exception in one of them is raised here and cancels the other runs."""
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[Told] = context.Queue()
    with ProcessPoolExecutor(processes, context, initializer=_remember, initargs=(told,)) as pool:
        futures = [pool.submit(_run_and_tell, place, case, more_tasks) for place, case in enumerate(cases)]
        try:
            _wait_for(futures, told, watching, keep)
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_on_dask(
    cases: Sequence[Case], more_tasks: MoreTasks, watching: Watching, keep: Keep = keep_nothing, *, address: str
) -> list[Ran]:
    """Run the cases on the Dask cluster whose scheduler is at `address`. Muster must be installed on its workers.

    Raises NoDaskError, and OSError if the scheduler does not answer.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415  an extra that may be missing
    except ImportError as error:
        raise NoDaskError from error
    with Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]  # Dask is untyped
        futures = [client.submit(run_case, case, more_tasks, unwatched, pure=False) for case in cases]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]  # likewise
            keep(places[future.key], future.result())
            watching.over(places[future.key])
        return [future.result() for future in futures]


def unwatched(at: Instant) -> None:
    """Ignore progress."""


def seldom(tell: Callable[[Instant], None]) -> Callable[[Instant], None]:
    """Return a wrapper that limits `tell` to a few calls per simulated day."""
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


def _run_and_tell(place: int, case: Case, more_tasks: MoreTasks) -> Ran:
    told = _told
    assert told is not None
    return run_case(case, more_tasks, seldom(lambda at: told.put((place, at))))


# ------------------------------------------------------------ in this one


def _wait_for(
    futures: Sequence[Future[Ran]], told: multiprocessing.Queue[Told], watching: Watching, keep: Keep
) -> None:
    places = {future: place for place, future in enumerate(futures)}
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=CHECK_S, return_when=FIRST_COMPLETED)
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


MOST_COMBINATIONS = 500

Axis = tuple[str, Sequence[object]]  # a setting's key and the values to try


def combinations(
    axes: Sequence[Axis], settings: Mapping[str, object], *, set_already: Collection[str] = ()
) -> list[Combination]:
    """Return all combinations of the values. The last key varies fastest. Raises InvalidInputError.

    Each combination is checked together with `settings`, so that an invalid one is refused before anything runs. The
    keys in `set_already` were set by another option.

    >>> combinations([("deadline.p_afap", [0.5, 0.7]), ("deadline.p_late", [0.6])], {})
    [{'deadline.p_afap': 0.5, 'deadline.p_late': 0.6}, {'deadline.p_afap': 0.7, 'deadline.p_late': 0.6}]
    """
    keys = [key for key, _ in axes]
    for key, times in Counter(keys).items():
        if key == RULE:
            raise InvalidInputError("--sweep", f"settings other than {RULE}; use --rule for it", key)
        if times > 1:
            raise InvalidInputError("--sweep", "each setting once", key)
        if key in set_already:
            raise InvalidInputError("--sweep", "settings not given with --set", key)
    many = math.prod(len(values) for _, values in axes)
    if many > MOST_COMBINATIONS:
        by = " x ".join(str(len(values)) for _, values in axes)
        raise InvalidInputError("--sweep", f"at most {MOST_COMBINATIONS} combinations", f"{by} = {many}")
    lists = [_checked(key, values) for key, values in axes]
    found = [dict(zip(keys, chosen, strict=True)) for chosen in product(*lists)]
    for one in found:
        Settings.from_mapping({**settings, **one})
    return list(found)


def _checked(key: str, values: Sequence[object]) -> list[object]:
    """Return the values as parsed by the setting."""
    if not values:
        raise InvalidInputError("--sweep", f"values of {key}", "none")
    found: list[object] = []
    for value in values:
        fit = Settings().changed(key, value).as_mapping()[key]
        if fit in found:
            raise InvalidInputError("--sweep", f"each value of {key} once", value)
        found.append(fit)
    return found


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of a sweep: every rule with every seed and combination, and the bound, which has no settings, once."""

    combinations: Sequence[Combination]
    by_combination: Sequence[Sequence[Case]]
    bound: Sequence[Case]

    @property
    def cases(self) -> list[Case]:
        """Return all cases as one list."""
        return [*self.bound, *(case for cases in self.by_combination for case in cases)]

    @property
    def by_case(self) -> list[Combination]:
        """Return the combination of each of `cases`, None for the bound."""
        of_cases = zip(self.combinations, self.by_combination, strict=True)
        return [*({} for _ in self.bound), *(settings for settings, cases in of_cases for _ in cases)]

    def swept(self, ran: Sequence[Ran]) -> Swept:
        """Return the results by combination. `ran` has the results of `cases`, in order."""
        runs = iter(ran)
        of_bound = [next(runs) for _ in self.bound]
        tried = [
            Tried(settings, compared([*cases, *self.bound], [*(next(runs) for _ in cases), *of_bound]))
            for settings, cases in zip(self.combinations, self.by_combination, strict=True)
        ]
        one = tried[0].comparison
        return Swept(one.scenario, one.seeds, tried)


def grid_of(
    scenario: FileScenario,
    axes: Sequence[Axis],
    *,
    rules: Iterable[str],
    seeds: Iterable[int],
    settings: Mapping[str, object],
) -> Grid:
    """Return a grid of all combinations of the values in `axes`, on top of `settings`. Raises InvalidInputError."""
    asked, chosen = list(rules), list(seeds)
    by_settings = [rule for rule in asked if rule != CLAIRVOYANT]
    if not by_settings:
        raise InvalidInputError("--sweep", f"a --rule that depends on settings in addition to {CLAIRVOYANT}", asked)
    found = combinations(axes, {**scenario.settings, **settings}, set_already=settings.keys())
    every = [
        cases_of(scenario, rules=by_settings, seeds=chosen, settings={**settings, **combination})
        for combination in found
    ]
    return Grid(
        found,
        every,
        cases_of(scenario, rules=[rule for rule in asked if rule == CLAIRVOYANT], seeds=chosen, settings=settings),
    )
