"""Makes many runs: `python -m tests.deterministic --seeds 1000`. Exit status 1 on any violation.

`--every`: instead of random failures, a small project in which each call to the store fails once, in each way, one per
run.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import structlog

from tests.deterministic.course import SMALL, Outcome, run
from tests.deterministic.faults import FAILURES, Fate, only

SHOWN = 5  # violations of a run
SUMS_EVERY = 250  # runs


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deterministic")
    parser.add_argument("--seeds", type=int, default=1000, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="each call fails once in each way; --first is the seed")
    asked = parser.parse_args(arguments)
    work = every_call(asked.first) if asked.every else stormy(asked.first, asked.seeds)
    with ProcessPoolExecutor(asked.processes, initializer=be_quiet) as processes:
        return tell(processes.map(_done, work, chunksize=8))


Work = partial[Outcome]


def stormy(first: int, seeds: int) -> Iterator[Work]:
    for seed in range(first, first + seeds):
        yield partial(run, seed)


def every_call(seed: int) -> Iterator[Work]:
    """Yield one run per call of a run without failures, and per way to fail."""
    be_quiet()
    for number in range(1, run(seed, SMALL, only(0, Fate.DONE)).calls + 1):
        for fate in FAILURES:
            yield partial(run_with_one, seed, number, fate)


def run_with_one(seed: int, number: int, fate: Fate) -> Outcome:
    return run(seed, SMALL, only(number, fate))


def be_quiet() -> None:
    """Silence the log: failures are intended."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _done(work: Work) -> tuple[str, Outcome]:
    return " ".join(str(one) for one in work.args), work()


def tell(outcomes: Iterable[tuple[str, Outcome]]) -> int:
    """Print violations, and the totals in one line, at intervals and at the end."""
    runs = breached = 0
    sums: Counter[str] = Counter()
    places: set[str] = set()
    for name, outcome in outcomes:
        runs += 1
        breached += bool(outcome.breaches)
        for breach in outcome.breaches[:SHOWN]:
            print(f"run {name}: {breach}", flush=True)
        places |= {place for place, _ in outcome.injected}
        sums.update(
            failures=outcome.failures,
            calls=sum(outcome.injected.values()),
            deaths=outcome.deaths,
            steps=outcome.clock_steps,
            replays=outcome.replays,
            requests=outcome.requests,
            results=outcome.acknowledged,
            violations=len(outcome.breaches),
        )
        if runs % SUMS_EVERY == 0:
            print(in_one_line(runs, breached, len(places), sums), flush=True)
    print(in_one_line(runs, breached, len(places), sums))
    return int(breached > 0)


def in_one_line(runs: int, breached: int, places: int, sums: Counter[str]) -> str:
    return (
        f"{runs} seeds, {sums['failures']} failures injected ({sums['calls']} of calls at {places} places, "
        f"{sums['deaths']} deaths, {sums['steps']} steps of clocks, {sums['replays']} replays), "
        f"{sums['requests']} requests, {sums['results']} results acknowledged, "
        f"{sums['violations']} violations in {breached} runs"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
