"""`make fuzz RUNS=N`: hostile inputs, in turns among the targets; the last line counts them and findings.

With atheris (requirements-fuzz.lock) coverage leads; with --unguided, mutations of real messages alone, the same for
the same seed. The folder keeps the corpus and the findings; what is fixed belongs in tests/fuzz/findings.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import structlog

from tests.fuzz.mutations import mutate
from tests.fuzz.plan import PLAN, runs_of
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import tried

TURN = 100_000  # executions of one target before the next has its turn


@dataclass(frozen=True, slots=True)
class Turn:
    """So many executions of one target, from a seed of its own."""

    target: str
    runs: int
    seed: int


def turns(runs: int, names: list[str], seed: int) -> Iterator[Turn]:
    """Turns in which every target gets its share."""
    left, number = runs_of(runs, names), 0
    while any(left.values()):
        for name in names:
            now = min(left[name], TURN)
            if now:
                left[name] -= now
                number += 1
                yield Turn(name, now, seed * 1000 + number)


def unguided(turn: Turn, folder: Path) -> int:
    """Mutations of the seeds alone. Returns the executions."""
    target, draw = TARGETS[turn.target], random.Random(turn.seed)
    run, seeds = target.make(), list(target.seeds())
    run(seeds[0])  # what is loaded late is loaded now
    for _ in range(turn.runs):
        found = tried(turn.target, run, mutate(draw.choice(seeds), draw, seeds))
        if found is not None:
            found.save(folder / "findings")
    return turn.runs


def guided(turn: Turn, folder: Path) -> int:
    """The same, led by coverage, in a process of its own. Returns the executions that were noted."""
    noted = folder / f"{turn.target}.json"
    noted.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.guided", turn.target, str(turn.runs), str(turn.seed), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        (folder / "findings" / f"{turn.target}-ended-{turn.seed}.txt").write_text(done.stderr[-4000:], encoding="utf-8")
    return int(json.loads(noted.read_text())["executions"]) if noted.exists() else 0


def found_in(folder: Path) -> list[Path]:
    """The inputs that were kept, not the texts beside them, and how processes ended before their time."""
    inputs = [path for path in (folder / "findings").rglob("*") if path.is_file()]
    return sorted(path for path in inputs if path.suffix != ".txt" or "-ended-" in path.name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="logged; the same seed makes the same unguided inputs")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--targets", nargs="*", choices=sorted(PLAN), default=sorted(PLAN))
    parser.add_argument("--folder", type=Path, default=None, help="where the corpus grows and findings are kept")
    parser.add_argument("--unguided", action="store_true", help="without atheris")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    folder = options.folder or Path(tempfile.mkdtemp(prefix="muster-fuzz-"))
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}, folder {folder}", flush=True)
    total = 0
    step = unguided if options.unguided else guided
    with ThreadPoolExecutor(1 if options.unguided else options.processes) as pool:
        planned = list(turns(options.runs, options.targets, options.seed))
        for turn, executions in zip(planned, pool.map(lambda one: step(one, folder), planned), strict=True):
            total += executions
            print(f"{turn.target}: {executions} (seed {turn.seed}); {total} in all", flush=True)
    found = found_in(folder)
    for path in found:
        print(path)
    print(f"executions {total}, findings {len(found)}")
    return 1 if found or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
