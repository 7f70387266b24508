"""One process, one target, inputs guided by coverage: `python -m tests.fuzz.guided TARGET RUNS SEED FOLDER SECONDS`.

Half of the inputs are mutated with the grammar, half by libFuzzer. A finding is saved in FOLDER/findings and the run
continues; a crash of the interpreter, or a library that never returns, ends it and leaves a file of libFuzzer's there.
Progress is recorded there too.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.noted import Noted
from tests.fuzz.plan import MOST_BYTES, PLAN

STUCK_S = 3600  # wall-clock limit, in which a process may have been stopped; the CPU time limit comes first
MOST_MIB = 4096
NOTED_EVERY = 2000


def main(name: str, runs: int, seed: int, folder: Path, within_s: float) -> None:
    """Fuzz until `runs` inputs were tried, or the time is over."""
    guide: Any = importlib.import_module("atheris")  # from requirements-fuzz.lock; it has no types
    with guide.instrument_imports(include=list(PLAN[name].packages)):
        targets = importlib.import_module("tests.fuzz.targets")
    structlog = importlib.import_module("structlog")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    watch, mutations = importlib.import_module("tests.fuzz.watch"), importlib.import_module("tests.fuzz.mutations")
    target = targets.TARGETS[name]
    run, seeds = target.make(), list(target.seeds())
    run(seeds[0])  # load lazy imports now
    noted = Noted.of(folder, name, seed)

    def one(raw: bytes) -> None:
        noted.executions += 1
        found = watch.tried(name, run, raw, endless_s=watch.ENDLESS_S)
        if found is not None:
            found.save(folder / "findings")
        if noted.executions % NOTED_EVERY == 0 or noted.executions == runs:
            noted.write()

    def mutate(raw: bytes, most: int, seed_: int) -> bytes:
        draw = random.Random(seed_)
        if draw.random() < 0.5:
            return bytes(guide.Mutate(raw, most))
        return bytes(mutations.mutate(raw, draw, seeds, most=most))

    corpus = folder / f"corpus-{name}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed_bytes in enumerate(seeds):
        (corpus / f"seed-{number:04d}").write_bytes(seed_bytes)
    options = [
        f"-runs={runs}",
        f"-seed={seed}",
        f"-max_total_time={0 if math.isinf(within_s) else max(1, int(within_s))}",
        f"-max_len={MOST_BYTES}",
        f"-timeout={STUCK_S}",
        f"-report_slow_units={STUCK_S}",
        "-verbosity=0",
        f"-rss_limit_mb={MOST_MIB}",
        f"-artifact_prefix={folder / 'findings'}/{name}-",
    ]
    guide.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutate)
    guide.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), float(sys.argv[5]))
