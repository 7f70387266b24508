"""One process, one target, mutations only: `python -m tests.fuzz.blind TARGET RUNS SEED FOLDER SECONDS`.

Mutates real messages, and earlier coverage finds in the same folder. An execution without measuring takes a quarter of
the time, so most are of this kind, and they start from equally deep inputs.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import structlog

from tests.fuzz.mutations import mutate
from tests.fuzz.noted import Noted
from tests.fuzz.plan import MOST_BYTES
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import ENDLESS_S, tried

LOOKED_EVERY = 1000  # executions between two checks of the clock


def blind(name: str, runs: int, seed: int, folder: Path, *, within_s: float = float("inf")) -> int:
    """Try `runs` mutations, or as many as time allows. Returns how many."""
    target, draw = TARGETS[name], random.Random(seed)
    run, seeds = target.make(), list(target.seeds())
    run(seeds[0])  # load lazy imports now
    grown = [*seeds, *grown_in(folder, name)]
    noted, end_s = Noted.of(folder, name, seed), time.monotonic() + within_s
    while noted.executions < runs and time.monotonic() < end_s:
        for _ in range(min(LOOKED_EVERY, runs - noted.executions)):
            noted.executions += 1
            raw = mutate(shorter(grown, draw), draw, grown, most=MOST_BYTES)
            found = tried(name, run, raw, endless_s=ENDLESS_S)
            if found is not None:
                found.save(folder / "findings")
        noted.write()
    return noted.executions


def grown_in(folder: Path, name: str) -> list[bytes]:
    """Return the coverage finds in an order that depends only on the files."""
    return [path.read_bytes() for path in sorted((folder / f"corpus-{name}").glob("*"))]


def shorter(messages: Sequence[bytes], draw: random.Random) -> bytes:
    """Return the shorter of two drawn messages: faster and as useful; long ones are still chosen sometimes.

    >>> draw = random.Random(1)
    >>> sum(len(shorter((b"a", b"long"), draw)) == 1 for _ in range(1000)) > 700
    True
    """
    return min(draw.choice(messages), draw.choice(messages), key=len)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    blind(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), within_s=float(sys.argv[5]))
