"""Runs the comparison from the command line: `python -m benchmarks.robustness --help`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy

import benchmarks.robustness as what
from benchmarks.robustness.kept import FOLDER, KeptRuns, digest_of_files, loaded_modules
from benchmarks.robustness.plan import HALVES, QUICK, SEEDS, USUAL_RULES, Planned, contestants_of, plan_of
from benchmarks.robustness.running import run_all, unkept
from benchmarks.robustness.table import Outcome, Run
from benchmarks.running import say
from cli.settings import parsed
from domain.errors import MusterError


def pair_of(text: str) -> tuple[str, object]:
    """
    >>> pair_of("deadline.min_slack_s=43200")
    ('deadline.min_slack_s', 43200)
    """
    key, equals, value = text.partition("=")
    if not key.strip() or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text}")
    return key.strip(), parsed(value.strip())


def variant_of(text: str) -> tuple[str, dict[str, object]]:
    """
    >>> variant_of("tail: feeder.tail_fraction=0.1 deadline.min_slack_s=43200")
    ('tail', {'lifecycle.tail_fraction': 0.1, 'deadline.min_slack_s': 43200})
    """
    name, colon, settings = text.partition(":")
    if not name.strip() or not colon or not settings.split():
        raise argparse.ArgumentTypeError(f"expected NAME: KEY=VALUE KEY=VALUE..., got {text}")
    return name.strip(), dict(pair_of(one) for one in settings.split())


def numbers_of(text: str) -> list[int]:
    """
    >>> numbers_of("3,7-9")
    [3, 7, 8, 9]
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise argparse.ArgumentTypeError(f"expected numbers and ranges such as 3,7-9, got {text}")
        found.extend(range(int(first), int(last or first) + 1))
    return list(dict.fromkeys(found))


def arguments_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--half", choices=tuple(HALVES), default="tuning", help="odd or even populations; tuning")
    which.add_argument("--populations", type=numbers_of, metavar="N,N-N", help="these populations instead of a half")
    parser.add_argument("--quick", action="store_true", help=f"only the first {QUICK} populations, one seed")
    parser.add_argument("--rules", default=",".join(USUAL_RULES), help="separated by commas")
    parser.add_argument("--seeds", type=int, default=None, help=f"runs of each; {SEEDS}, with --quick 1")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--set", type=pair_of, action="append", default=[], metavar="KEY=VALUE", help="for `muster`")
    parser.add_argument(
        "--variant",
        type=variant_of,
        action="append",
        default=[],
        metavar="NAME:KEY=VALUE...",
        help="an additional `muster` with these settings, on the same populations and seeds",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster instead")
    parser.add_argument("--again", action="store_true", help="ignore kept runs")
    parser.add_argument("--runs", type=Path, default=FOLDER, metavar="FOLDER", help="folder for finished runs")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    asked = arguments_of(arguments)
    populations = list(asked.populations or HALVES[asked.half])[: QUICK if asked.quick else None]
    count = asked.seeds or (1 if asked.quick else SEEDS)
    seeds = range(asked.first_seed, asked.first_seed + count)
    try:
        contestants = contestants_of(asked.rules.split(","), dict(asked.set), dict(asked.variant))
        planned = plan_of(populations, contestants, seeds)
    except MusterError as error:
        raise SystemExit(str(error)) from error
    kept = KeptRuns(asked.runs, again=asked.again)
    cases = [one.case for one in planned]
    say(f"{len(cases)} runs of {len(populations)} populations, {len(unkept(cases, kept))} of them to do")
    stopped = False
    try:
        run_all(cases, kept, processes=asked.workers, dask_address=asked.dask)
    except KeyboardInterrupt:
        stopped = True
        say(f"stopped; {len(unkept(cases, kept))} runs are missing: repeat the command to continue")
    outcome = Outcome(whole_populations(planned, kept))
    if asked.json:
        conditions: dict[str, object] = {
            "command": list(sys.argv[1:] if arguments is None else arguments),
            "populations": populations,
            "missing": sorted(set(populations) - set(outcome.populations)),
            "seeds": list(seeds),
            "code": digest_of_files(loaded_modules()),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        }
        print(json.dumps(outcome.as_json(conditions)))
    elif outcome.populations:
        print(outcome.table())
        for contestant in outcome.contestants:
            print(outcome.population_table(contestant))
    return 130 if stopped else 0


def whole_populations(planned: Sequence[Planned], kept: KeptRuns) -> list[Run]:
    """Return the runs of those populations whose runs are complete."""
    found = [(one, kept.find(one.case)) for one in planned]
    missing = {one.population for one, ran in found if ran is None}
    return [(one, ran) for one, ran in found if ran is not None and one.population not in missing]


if __name__ == "__main__":
    sys.exit(main())
