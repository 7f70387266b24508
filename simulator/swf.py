"""Reads workload logs of real clusters, in Standard Workload Format, as batches of a scenario.

Each line is a job of at least 18 numbers, ';' begins a comment, a negative number means "unknown". A job that used p
processors for t seconds becomes a batch of p jobs of t seconds on a processor of 1 Gflop/s. A user's jobs of similar
length within TOGETHER_S of the first become one batch, because users' scripts submit such jobs together.

In the format's definition (version 2.2, Parallel Workloads Archive), status 0 is a failed job, 1 a completed job, 5 a
job cancelled before or while it ran, and -1 unknown. Statuses 2 to 4 are partial executions of a suspended job, which
also has a line with its whole run time, so they are skipped. Jobs that never ran or lack a submission time or a number
of processors are skipped too. Failed and cancelled jobs count with their run time. Lines may be in any order.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.submission import MAX_JOBS
from domain.units import HOUR_S, Seconds
from simulator.submitters import BatchPlan

COLUMNS = 18
TOGETHER_S = HOUR_S
AFAP_EVERY = 4
FLOP_PER_S = 1e9  # speed of the processor on which a job takes its logged run time
NAMES = ("job", "submit", "wait", "run time", "processors", "CPU time", "memory", "processors requested")
PARTIAL = (2, 3, 4)
CANCELLED = 5
BEHIND_END, NOT_ASKED_FOR = "after the end", "beyond the job limit"
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job in a log. Times are in seconds since the log's start. None: unknown. `asked_s`: requested run time."""

    number: int
    submitted_s: float
    run_s: float
    processors: int
    user: int
    group: int = -1
    waited_s: float | None = None
    asked_s: float | None = None


LeftOut = Counter[str]  # number of skipped jobs by reason


def read_swf(path: Path, left_out: LeftOut | None = None) -> Iterator[LoggedJob]:
    """Yield the jobs in a file, gzipped or not. Skipped jobs are counted in `left_out`.

    Raises InvalidInputError, which names the line.
    """
    yield from parse_swf(_lines(path), str(path), left_out)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
        with (
            gzip.open(path) if packed else path.open("rb") as unpacked,
            io.TextIOWrapper(unpacked, encoding="utf-8", errors="replace") as lines,  # names may be in any encoding
        ):
            yield from lines
    except (OSError, EOFError, zlib.error) as error:  # a damaged gzip file raises any of them
        raise InvalidInputError(str(path), "a readable log in Standard Workload Format", str(error)) from error


def parse_swf(lines: Iterable[str], where: str, left_out: LeftOut | None = None) -> Iterator[LoggedJob]:
    """Yield the jobs in these lines.

    >>> list(parse_swf(["; comment", "1 10 0 3600 2 -1 -1 2 7200 -1 1 5 1 1 1 1 -1 -1"], "log"))
    [LoggedJob(number=1, submitted_s=10.0, run_s=3600.0, processors=2, user=5, group=1, waited_s=0.0, asked_s=7200.0)]
    >>> left_out = LeftOut()
    >>> list(parse_swf(["1 10 0 60 2 -1 -1 2 7200 -1 3 5 1 1 1 1 -1 -1"], "log", left_out)), dict(left_out)
    ([], {'partial executions': 1})
    """
    left_out = LeftOut() if left_out is None else left_out
    line_of = dict[int, int]()
    for number, line in enumerate(lines, start=1):
        text = line.partition(";")[0].strip()
        if not text:
            continue
        place = f"{where} line {number}"
        job = _job(text.split(maxsplit=COLUMNS), place)
        if isinstance(job, str):
            left_out[job] += 1
            continue
        if line_of.setdefault(job.number, number) != number:
            expected = f"a unique number; line {line_of[job.number]} has the same"
            raise InvalidInputError(f"{place}, job", expected, job.number)
        yield job


def _job(cells: list[str], where: str) -> LoggedJob | str:
    """Return the job, or the reason for skipping it."""
    if len(cells) < COLUMNS:
        raise InvalidInputError(where, f"{COLUMNS} columns", f"{len(cells)} columns")
    status, run_s, submitted_s = (_number(cells, place, where) for place in (10, 3, 1))
    used, requested = int(_number(cells, 4, where)), int(_number(cells, 7, where))
    processors = used if used > 0 else requested
    if status in PARTIAL:
        return "partial executions"
    if run_s <= 0:
        return "cancelled before they started" if status == CANCELLED else "without a run time"
    if processors <= 0:
        return "on an unknown number of processors"
    if submitted_s < 0:
        return "submitted at an unknown time"
    return LoggedJob(
        int(_number(cells, 0, where)),
        submitted_s,
        run_s,
        processors,
        int(_number(cells, 11, where)),
        int(_number(cells, 12, where)),
        _known(_number(cells, 2, where)),
        _known(_number(cells, 8, where)),
    )


def _known(value: float) -> float | None:
    return value if value >= 0 else None


def processors_of(path: Path) -> int | None:
    """Return the number of processors from the log's header (MaxProcs, else MaxNodes), None if it has neither.

    Raises InvalidInputError for an unreadable file.
    """
    found = dict[str, int]()
    for line in _lines(path):
        if not line.startswith(";"):
            break
        name, _, value = line.lstrip("; ").partition(":")
        if name in ("MaxProcs", "MaxNodes") and value.strip().isascii() and value.strip().isdigit():
            found[name] = int(value)
    return found.get("MaxProcs", found.get("MaxNodes")) or None


def _number(cells: list[str], place: int, where: str) -> float:
    name = NAMES[place] if place < len(NAMES) else f"column {place + 1}"
    try:
        value = float(cells[place])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInputError(f"{where}, {name}", "a number", cells[place])
    return value


@dataclass(frozen=True, slots=True)
class Replay:
    """How a log is converted to batches. Times are divided by `speed_up`; jobs after `horizon_s`, and jobs submitted
    after the first `most_jobs`, are skipped.

    Every AFAP_EVERY-th user submits AFAP batches; the batches of all other users can wait.
    """

    app: str
    horizon_s: Seconds
    delay_bound_s: Seconds
    speed_up: float = 1.0
    most_jobs: int | None = None


def plans_of(jobs: Iterable[LoggedJob], replay: Replay, left_out: LeftOut | None = None) -> list[BatchPlan]:
    """Convert a log's jobs to batches, in any order. The first submission is at second 0."""
    chosen = _in_time(jobs, replay, LeftOut() if left_out is None else left_out)
    plans: list[BatchPlan] = []
    open_plans: dict[tuple[int, int], int] = {}  # (user, size) -> index in `plans`
    for job in chosen:
        at_s = (job.submitted_s - chosen[0].submitted_s) / replay.speed_up
        alike = (job.user, round(math.log2(job.run_s)))
        place = open_plans.get(alike)
        if place is not None and _joins(plans[place], job, at_s, replay):
            plans[place] = _joined(plans[place], job)
            continue
        open_plans[alike] = len(plans)
        plans.append(_plan(job, at_s, replay))
    return plans


def _in_time(jobs: Iterable[LoggedJob], replay: Replay, left_out: LeftOut) -> list[LoggedJob]:
    """Return the jobs before the horizon in order of submission, without holding all of a long log in memory."""
    within_s = replay.horizon_s * replay.speed_up
    first_s = math.inf
    found = list[LoggedJob]()
    late = 0
    for job in jobs:
        first_s = min(first_s, job.submitted_s)
        if job.submitted_s - first_s < within_s:
            found.append(job)
        else:
            late += 1
    found.sort(key=attrgetter("submitted_s"))
    in_time = [job for job in found if job.submitted_s - first_s < within_s]
    chosen = in_time[: replay.most_jobs]
    left_out.update({BEHIND_END: late + len(found) - len(in_time), NOT_ASKED_FOR: len(in_time) - len(chosen)})
    return chosen


def told(plans: Iterable[BatchPlan], left_out: Mapping[str, int]) -> str:
    """Return a one-line summary of a log.

    >>> told([], {"partial executions": 2, "behind the end": 0, "without a run time": 1})
    'batches: 0, jobs: 0; left out: 2 partial executions, 1 without a run time'
    """
    every = list(plans)
    text = f"batches: {len(every)}, jobs: {sum(plan.jobs for plan in every)}"
    missing = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
    return f"{text}; left out: {missing}" if missing else text


def _joins(plan: BatchPlan, job: LoggedJob, at_s: float, replay: Replay) -> bool:
    return at_s - plan.at_s <= TOGETHER_S / replay.speed_up and plan.jobs + job.processors <= MAX_JOBS


def _joined(plan: BatchPlan, job: LoggedJob) -> BatchPlan:
    """Return the batch extended by this job, with the mean length of all its jobs."""
    jobs = plan.jobs + job.processors
    flop = (plan.jobs * plan.fpops_est + job.processors * job.run_s * FLOP_PER_S) / jobs
    return replace(plan, jobs=jobs, fpops_est=flop)


def _plan(job: LoggedJob, at_s: float, replay: Replay) -> BatchPlan:
    in_a_hurry = job.user % AFAP_EVERY == 0
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
