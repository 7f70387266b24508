"""`make fuzz RUNS=N`: hostile inputs, in rounds of all targets; the last lines give counts by target, and findings.

With atheris (requirements-fuzz.lock) part of each turn is guided by coverage, and the rest mutates its finds; with
--unguided all inputs are mutations of real messages, the same for the same seed and an empty folder. The folder keeps
the corpus and the findings; fixed findings belong in tests/fuzz/findings.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.noted import Noted
from tests.fuzz.plan import GUIDED, PLAN, ROUND, runs_of


@dataclass(frozen=True, slots=True)
class Turn:
    """`runs` executions of one target, from a seed of its own."""

    target: str
    runs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a turn: executions guided by coverage, and others."""

    guided: int
    blind: int


def turns(runs: int, names: list[str], seed: int) -> Iterator[Turn]:
    """Return turns that give every target its share, in every round too."""
    left, most, number = runs_of(runs, names), runs_of(ROUND, names), 0
    while any(left.values()):
        for name in names:
            now = min(left[name], most[name])
            if now:
                left[name] -= now
                number += 1
                yield Turn(name, now, seed * 1000 + number)


def done(turn: Turn, folder: Path, end_s: float, *, led: float = GUIDED) -> Done:
    """Run a `led` part guided by coverage, then mutations of its finds; each in a process of its own."""
    guided = _of_a_process("guided", turn, int(turn.runs * led), folder, end_s)
    return Done(guided, _of_a_process("blind", turn, turn.runs - guided, folder, end_s))


def _of_a_process(how: str, turn: Turn, runs: int, folder: Path, end_s: float) -> int:
    """Return the counted executions. A process that ended early leaves its output as a finding."""
    within_s = end_s - time.monotonic()
    if runs <= 0 or within_s <= 0:
        return 0
    noted = Noted.of(folder, turn.target, turn.seed)
    noted.taken()
    words = [turn.target, str(runs), str(turn.seed), str(folder), str(within_s)]
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{how}", *words], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        (folder / "findings" / f"{turn.target}-ended-{turn.seed}.txt").write_text(
            ended.stderr[-4000:], encoding="utf-8"
        )
    return noted.taken()


def found_in(folder: Path) -> list[Path]:
    """Return the saved inputs, without the texts beside them, and reports of processes that ended early."""
    inputs = [path for path in (folder / "findings").rglob("*") if path.is_file()]
    return sorted(path for path in inputs if path.suffix != ".txt" or "-ended-" in path.name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="logged; the same seed makes the same unguided inputs")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after this many seconds, finished or not"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--targets", nargs="*", choices=sorted(PLAN), default=sorted(PLAN))
    parser.add_argument("--folder", type=Path, default=None, help="folder of the corpus and the findings")
    parser.add_argument("--unguided", action="store_true", help="without atheris")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="muster-fuzz-"))
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}, folder {folder}", flush=True)
    end_s = time.monotonic() + options.seconds

    led = 0.0 if options.unguided else GUIDED
    guided, others = Counter[str](), Counter[str]()
    with ThreadPoolExecutor(options.processes) as pool:
        planned = list(turns(options.runs, options.targets, options.seed))
        for turn, one in zip(planned, pool.map(lambda turn: done(turn, folder, end_s, led=led), planned), strict=True):
            guided[turn.target] += one.guided
            others[turn.target] += one.blind
            total = guided.total() + others.total()
            print(f"{turn.target}: {one.guided} guided, {one.blind} (seed {turn.seed}); {total} in all", flush=True)
    found = found_in(folder)
    for path in found:
        print(path)
    for name in options.targets:
        print(f"{name}: executions {guided[name] + others[name]}, of them led by coverage {guided[name]}")
    print(f"executions {total}, findings {len(found)}")
    return 1 if found or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
