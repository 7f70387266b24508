"""Sums a request worker's profile by stage of a request.

`python -m benchmarks.parts worker.txt --us 320 [--json]` reads the output of `py-spy record --format raw`, which has a
line for each stack with its frames, outermost first and separated by semicolons, and its count. `--us` is the workers'
CPU time per request (`python_cpu_us_per_request` minus `background_cpu_us_per_request` from `benchmarks.dispatch`).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from domain.errors import InvalidInputError

IDLE = "_worker (concurrent/"  # a thread that waits for work
REST = "event loop and sockets"
# A stack counts for the first part that matches one of its frames; inner parts come first.
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("decode", ("decode_request (",)),
    ("encode", ("encode_reply (",)),
    ("store, reads", ("read_many (",)),
    ("store, writes", ("write_many (", "_write_many (")),
    ("decide", ("choose (scheduler/", "search (feeder/")),
    ("refill", ("(feeder/",)),
    ("reports", ("take_reports (", "review_held (")),
    ("admit", ("admit (", "_admitted (")),
    ("grouping", ("(store/group.py",)),
    ("rest of the service", ("(scheduler/", "(store/")),
    ("aiohttp", ("(aiohttp/",)),
)


def parts_of(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of each part, largest first, excluding idle threads and stacks without frames. Raises
    InvalidInputError.

    >>> parts_of(["run (loop.py:1);handle (scheduler/handler.py:9);decode_request (wire/decode.py:3) 3",
    ...           "run (loop.py:1) 1", "_worker (concurrent/futures/thread.py:81) 9"])
    {'decode': 0.75, 'event loop and sockets': 0.25}
    """
    seen: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if not count.isdecimal():
            raise InvalidInputError(f"line {number}", "a stack and its count", line)
        if stack and IDLE not in stack:  # without frames: the process changed while it was sampled
            seen[_part(stack.split(";"))] += int(count)
    return {part: count / seen.total() for part, count in seen.most_common()}


def _part(frames: list[str]) -> str:
    for part, marks in PARTS:
        if any(mark in frame for mark in marks for frame in frames):
            return part
    return REST


def table(shares: Mapping[str, float], us_per_request: float) -> dict[str, float]:
    """Return each part's microseconds per request.

    >>> table({"decode": 0.75, "aiohttp": 0.25}, 320.0)
    {'decode': 240.0, 'aiohttp': 80.0}
    """
    return {part: round(share * us_per_request, 1) for part, share in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--us", type=float, required=True, help="CPU time of the workers per request, in microseconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        with options.profile.open(encoding="utf-8") as lines:
            figures = table(parts_of(lines), options.us)
    except InvalidInputError as error:
        parser.error(str(error))
    print(json.dumps(figures) if options.json else "\n".join(f"{part:24} {us:7.1f}" for part, us in figures.items()))


if __name__ == "__main__":
    main()
