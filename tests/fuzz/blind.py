"""One process, one target, mutations alone: `python -m tests.fuzz.blind TARGET RUNS SEED FOLDER SECONDS`.

What is mutated are real messages, and what coverage has found before in the same folder. An execution that is not
measured takes a quarter of the time of one that is, so most are of this kind; what they are made of reaches as deep.
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

LOOKED_EVERY = 1000  # executions between two looks at the clock


def blind(name: str, runs: int, seed: int, folder: Path, *, within_s: float = float("inf")) -> int:
    """Try so many mutations, or as many as there is time for. Returns how many."""
    target, draw = TARGETS[name], random.Random(seed)
    run, seeds = target.make(), list(target.seeds())
    run(seeds[0])  # what is loaded late is loaded now
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
    """What coverage kept, in an order that the same files always have."""
    return [path.read_bytes() for path in sorted((folder / f"corpus-{name}").glob("*"))]


def shorter(messages: Sequence[bytes], draw: random.Random) -> bytes:
    """The shorter one of two drawn: it is read sooner, and says as much; long ones still have their turn.

    >>> draw = random.Random(1)
    >>> sum(len(shorter((b"a", b"long"), draw)) == 1 for _ in range(1000)) > 700
    True
    """
    return min(draw.choice(messages), draw.choice(messages), key=len)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    blind(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), within_s=float(sys.argv[5]))
