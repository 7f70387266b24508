"""Workload logs in Standard Workload Format: what people submitted to a real cluster, as batches of a scenario.

A line is a job of 18 numbers or more, ';' begins a comment, below 0 is "not known". A job that used p processors for t
seconds becomes a batch of p jobs of t seconds on a processor of 1 Gflop/s; jobs of one user that came within
`together_s` of the first, alike in length, are one batch, as a user's script submits them. Jobs that never ran are
left out.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.submission import MAX_JOBS
from domain.units import HOUR_S, Seconds
from simulator.submitters import BatchPlan

COLUMNS = 18
FLOP_PER_S = 1e9  # of the processor on which a job takes its run time
NAMES = ("job", "submit", "wait", "run time", "processors", "CPU time", "memory", "processors requested")
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job of a log. Seconds count from the log's own zero; None is not known. `asked_s`: the run time asked for."""

    number: int
    submitted_s: float
    run_s: float
    processors: int
    user: int
    group: int = -1
    waited_s: float | None = None
    asked_s: float | None = None


def read_swf(path: Path) -> Iterator[LoggedJob]:
    """The jobs of a file, gzipped or not, one after the other; those that never ran are left out.

    Raises InvalidInputError naming the line.
    """
    yield from parse_swf(_lines(path), str(path))


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
        with (
            gzip.open(path) if packed else path.open("rb") as unpacked,
            io.TextIOWrapper(unpacked, encoding="utf-8", errors="replace") as lines,  # names are in any encoding
        ):
            yield from lines
    except (OSError, EOFError, zlib.error) as error:  # a damaged gzip file is any of them
        raise InvalidInputError(str(path), "a readable log in Standard Workload Format", str(error)) from error


def parse_swf(lines: Iterable[str], where: str) -> Iterator[LoggedJob]:
    """The jobs of these lines.

    >>> list(parse_swf(["; comment", "1 10 0 3600 2 -1 -1 2 7200 -1 1 5 1 1 1 1 -1 -1"], "log"))
    [LoggedJob(number=1, submitted_s=10.0, run_s=3600.0, processors=2, user=5, group=1, waited_s=0.0, asked_s=7200.0)]
    """
    for number, line in enumerate(lines, start=1):
        text = line.partition(";")[0].strip()
        if not text:
            continue
        job = _job(text.split(maxsplit=COLUMNS), f"{where} line {number}")
        if job is not None:
            yield job


def _job(cells: list[str], where: str) -> LoggedJob | None:
    if len(cells) < COLUMNS:
        raise InvalidInputError(where, f"{COLUMNS} columns", f"{len(cells)} columns")
    run_s = _number(cells, 3, where)
    used, requested = _number(cells, 4, where), _number(cells, 7, where)
    processors = used if used > 0 else requested
    if run_s <= 0 or processors <= 0:
        return None
    return LoggedJob(
        int(_number(cells, 0, where)),
        _number(cells, 1, where, low=0.0),
        run_s,
        int(processors),
        int(_number(cells, 11, where)),
        int(_number(cells, 12, where)),
        _known(_number(cells, 2, where)),
        _known(_number(cells, 8, where)),
    )


def _known(value: float) -> float | None:
    return value if value >= 0 else None


def processors_of(path: Path) -> int | None:
    """How many processors the log's heading says the computer had (MaxProcs, else MaxNodes); None: it does not say.

    Raises InvalidInputError for a file that cannot be read.
    """
    found = dict[str, int]()
    for line in _lines(path):
        if not line.startswith(";"):
            break
        name, _, value = line.lstrip("; ").partition(":")
        if name in ("MaxProcs", "MaxNodes") and value.strip().isascii() and value.strip().isdigit():
            found[name] = int(value)
    return found.get("MaxProcs", found.get("MaxNodes")) or None


def _number(cells: list[str], place: int, where: str, *, low: float = -math.inf) -> float:
    name = NAMES[place] if place < len(NAMES) else f"column {place + 1}"
    try:
        value = float(cells[place])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= low):
        expected = "a number" if low == -math.inf else f"a number of at least {low:g}"
        raise InvalidInputError(f"{where}, {name}", expected, cells[place])
    return value


@dataclass(frozen=True, slots=True)
class Replay:
    """How a log becomes batches. Times are divided by `speed_up`; everything behind `horizon_s` is left out.

    Users take turns in kinds of batches: every `afap_every`-th user is in a hurry, the others can wait.
    """

    app: str
    horizon_s: Seconds
    delay_bound_s: Seconds
    speed_up: float = 1.0
    together_s: float = HOUR_S
    afap_every: int = 4


def plans_of(jobs: Iterable[LoggedJob], replay: Replay) -> list[BatchPlan]:
    """The batches of a log. The first job comes at second 0; jobs must be in the order of their submission."""
    plans: list[BatchPlan] = []
    open_plans: dict[tuple[int, int], int] = {}  # (user, size) -> place in `plans`
    first_s: float | None = None
    for job in jobs:
        first_s = job.submitted_s if first_s is None else first_s
        at_s = (job.submitted_s - first_s) / replay.speed_up
        if at_s < 0:
            raise InvalidInputError(f"job {job.number}", "jobs in the order of their submission", job.submitted_s)
        if at_s >= replay.horizon_s:
            break
        alike = (job.user, round(math.log2(job.run_s)))
        place = open_plans.get(alike)
        if place is not None and _joins(plans[place], job, at_s, replay):
            plans[place] = _joined(plans[place], job)
            continue
        open_plans[alike] = len(plans)
        plans.append(_plan(job, at_s, replay))
    return plans


def _joins(plan: BatchPlan, job: LoggedJob, at_s: float, replay: Replay) -> bool:
    return at_s - plan.at_s <= replay.together_s / replay.speed_up and plan.jobs + job.processors <= MAX_JOBS


def _joined(plan: BatchPlan, job: LoggedJob) -> BatchPlan:
    """With more jobs, of the mean length."""
    jobs = plan.jobs + job.processors
    flop = (plan.jobs * plan.fpops_est + job.processors * job.run_s * FLOP_PER_S) / jobs
    return BatchPlan(
        plan.name, plan.app, plan.submitter, plan.qos, plan.at_s, jobs, flop, plan.delay_bound_s, plan.deadline_s
    )


def _plan(job: LoggedJob, at_s: float, replay: Replay) -> BatchPlan:
    in_a_hurry = job.user % replay.afap_every == 0
    return BatchPlan(
        f"job{job.number}",
        replay.app,
        f"user{job.user}",
        QoS.AFAP if in_a_hurry else QoS.LONG_DEADLINE,
        at_s,
        min(MAX_JOBS, job.processors),
        job.run_s * FLOP_PER_S,
        replay.delay_bound_s,
    )
