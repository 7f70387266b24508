"""Runs benchmarks in a temporary directory, and times a reference operation for comparison."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from domain.clock import Clock, SystemClock
from domain.errors import MusterError

T = TypeVar("T")


def parser_of(doc: str | None, *, folder: str = "folder to work in and keep") -> argparse.ArgumentParser:
    """Return a parser with the options --folder, with this help, and --json."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None, help=folder)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def in_folder(
    measure: Callable[[Path], Coroutine[Any, Any, T]], folder: Path | None = None, *, within: Path | None = None
) -> T:
    """Measure in `folder`, which is kept, or else in a new directory, which is removed.

    `within` is the parent of the new directory, by default the system's.
    """
    work = folder or Path(tempfile.mkdtemp(prefix="muster-bench-", dir=within))
    work.mkdir(parents=True, exist_ok=True)
    try:
        return asyncio.run(measure(work))
    finally:
        if folder is None:
            shutil.rmtree(work, ignore_errors=True)


def run_and_tell(
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace, Path, Clock], Coroutine[Any, Any, dict[str, Any]]],
    table: Callable[[Mapping[str, Any]], str],
) -> None:
    """Measure with the given options, in their `folder`, and print the figures and the elapsed time.

    The output is one JSON object, or text formatted by `table`.
    """
    clock = SystemClock()
    began_s = clock.monotonic()
    figures = in_folder(lambda folder: measure(options, folder, clock), options.folder)
    figures["took_s"] = round(clock.monotonic() - began_s, 1)
    print(json.dumps(figures) if options.json else table(figures))


def rounded(value: float) -> float:
    """Return a figure with four significant digits."""
    return float(f"{value:.4g}")


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def tell(figures: Mapping[str, float], *, as_json: bool) -> None:
    """Print figures as one JSON object, or with one line per figure."""
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:24} {value:14g}")


def reference_us() -> float:
    """Return the CPU microseconds of a fixed operation: 1,000 changes of a small dictionary."""
    times = []
    for _ in range(200):
        found: dict[int, int] = {}
        began = time.process_time_ns()
        for number in range(1000):
            found[number % 97] = found.get(number % 89, 0) + number
        times.append((time.process_time_ns() - began) / 1000.0)
    return median(times)


class BenchmarkError(MusterError):
    """A measured process did not start, or failed."""


async def asked(process: asyncio.subprocess.Process, command: dict[str, object]) -> dict[str, Any]:
    """Send a command to a load generator and return the answer. Raises BenchmarkError."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(command).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise BenchmarkError("the load generator failed; its error is above")
    answer: dict[str, Any] = json.loads(line)
    return answer
