"""Runs a workload log through the ordering code, policy by policy, in virtual time and without a database.

`python -m benchmarks.workload --trace FILE.swf[.gz] [--policy NAME …] [--json]`. A job of p processors becomes a batch
of p single jobs. The processors in the log's header (or `--processors`, or as many as result in `--load`) request one
job each whenever they are idle. Order, standings, charges and limits are those of `priority`. All users in a group have
equal shares, and so do all groups. Volunteers' faults, deadlines and the feeder's slots are omitted, to compare only
the order.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.workload.figures import Fairness, logged, waits
from benchmarks.workload.pulling import Went, pulled
from benchmarks.workload.submitted import Workload, workload_of
from benchmarks.workload.waiting import Waiting
from domain.errors import InvalidInputError, MusterError
from domain.limits import Limit, Quantity, Scope
from domain.settings import Settings
from domain.units import DAY_S
from priority.policies import POLICIES
from simulator.swf import processors_of, read_swf

SETTINGS = {
    "ordering.components": "QUEUETIMEWEIGHT=1 XFACTORWEIGHT=100 FSUSERWEIGHT=50",
    "ordering.targets": "user:DEFAULT=20",
}


def settings_of(changes: Sequence[str]) -> Settings:
    """Return the settings with these KEY=VALUE changes. Raises InvalidInputError."""
    settings = Settings()
    for key, value in SETTINGS.items():
        settings = settings.changed(key, value)
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise InvalidInputError("--set", "KEY=VALUE", change)
        try:
            settings = settings.changed(key, json.loads(text))
        except json.JSONDecodeError:
            settings = settings.changed(key, text)
    return settings


def limits_of(jobs: str | None) -> list[Limit]:
    """Return a limit of SOFT,HARD jobs in progress per submitter. Raises InvalidInputError.

    >>> limits_of("2,8")[0].hard
    8.0
    """
    if jobs is None:
        return []
    numbers = jobs.split(",")
    if len(numbers) != 2 or not all(one.isascii() and one.isdigit() and int(one) > 0 for one in numbers):
        raise InvalidInputError("--limit-jobs", "SOFT,HARD, two whole numbers above 0", jobs)
    return [Limit(Scope.SUBMITTER, Quantity.JOBS, soft=float(numbers[0]), hard=float(numbers[1]))]


def processors_for(asked: argparse.Namespace, workload: Workload) -> int:
    """Return the number of processors. Raises InvalidInputError if neither the options nor the log give it."""
    if asked.processors is not None:
        return int(asked.processors)
    if asked.load is not None:
        load: float = asked.load
        return max(1, math.ceil(workload.work_s / max(workload.length_s, 1.0) / load))
    found = processors_of(asked.trace)
    if found is None:
        raise InvalidInputError("--processors", "a number, because the log's header has no MaxProcs", "nothing")
    return found


def run(
    name: str, workload: Workload, settings: Settings, *, processors: int, limits: Sequence[Limit], every_s: float
) -> tuple[dict[str, float | int], list[Went]]:
    """Run one policy and return its figures."""
    began = time.process_time()
    waiting = Waiting(workload, settings.changed("ordering.policy", name), processors=processors, limits=limits)
    fairness = Fairness(processors)
    went = pulled(workload, waiting, processors=processors, sample=fairness.look, every_s=every_s)
    figures = waits(went) | fairness.figures()
    figures |= {"orderings": waiting.orderings, "cpu_s": round(time.process_time() - began, 1)}
    return figures, went


def measure(asked: argparse.Namespace) -> dict[str, object]:
    """Run all policies on one log."""
    settings = settings_of(asked.set)
    workload = workload_of(read_swf(asked.trace), until_s=asked.days * DAY_S)
    if not workload.batches:
        raise InvalidInputError("--trace", "a log with jobs that ran", str(asked.trace))
    processors = processors_for(asked, workload)
    policies: dict[str, object] = {}
    went = list[Went]()
    for name in dict.fromkeys(asked.policy or POLICIES):
        print(f"{name} ...", file=sys.stderr)
        policies[name], went = run(
            name,
            workload,
            settings,
            processors=processors,
            limits=limits_of(asked.limit_jobs),
            every_s=asked.look_s,
        )
    return {
        "trace": asked.trace.name,
        "batches": len(workload.batches),
        "jobs": sum(one.jobs for one in workload.batches),
        "submitters": len(workload.leaves),
        "days": round(workload.length_s / DAY_S, 2),
        "processors": processors,
        "load": round(workload.work_s / max(workload.length_s, 1.0) / processors, 3),
        "interval_s": settings.ordering.interval_s,
        "as_logged": logged(went),
        "policies": policies,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workload", description=__doc__)
    parser.add_argument("--trace", type=Path, required=True, help="a log in Standard Workload Format, gzipped or not")
    parser.add_argument(
        "--policy", action="append", choices=list(POLICIES), help="policy to run; may be repeated; default: all"
    )
    parser.add_argument("--processors", type=_positive_int, help="processors; default: those of the log's header")
    parser.add_argument("--load", type=_positive, help="as many processors as give this load, instead of the header's")
    parser.add_argument("--days", type=_positive, default=math.inf, help="only jobs submitted within this many days")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, as ordering.policy")
    parser.add_argument("--limit-jobs", metavar="SOFT,HARD", help="limits of jobs in progress per submitter")
    parser.add_argument("--look-s", type=_positive, default=300.0, help="seconds between samples of fairness")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    try:
        answers = measure(asked)
    except MusterError as error:
        print(f"benchmarks.workload: {error}", file=sys.stderr)
        return 1
    if asked.json:
        print(json.dumps(answers))
        return 0
    for name, value in answers.items():
        if isinstance(value, dict) and name == "policies":
            for policy, figures in value.items():
                print(policy)
                for figure, number in figures.items():
                    print(f"  {figure:28} {number}")
        else:
            print(f"{name:30} {value}")
    return 0


def _positive(text: str) -> float:
    number = float(text)
    if not (number > 0.0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def _positive_int(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
