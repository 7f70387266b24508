"""Reads the benchmarks' JSON objects and computes medians over runs with the same options. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from statistics import median
from typing import Any, TypeVar

from domain.errors import InvalidInputError

REFILL_KEY = re.compile(r"(full|steady|round|after_sends_full)_s_(\w+)_slots_(\w+)")
ROUND_NUMBERS = {"k": 1_000, "m": 1_000_000}
Value = TypeVar("Value", int, float, str)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a run of `benchmarks.dispatch`. The defaults are the options of its first command."""

    workers: int = 2
    jobs_per_request: int = 1
    slots: int = 1_000
    waiting_jobs: int = 400_000
    connections: int = 64
    load: float = 1.0


@dataclass(frozen=True, slots=True)
class Answered:
    """The results of a run: rates, latencies, and microseconds of CPU per request.

    `python_cpu_us_per_request` covers the workers and the background process.
    """

    requests_per_s: float
    jobs_per_s: float
    p50_ms: float
    p99_ms: float
    python_cpu_us_per_request: float
    background_cpu_us_per_request: float
    postgres_cpu_us_per_request: float

    @property
    def workers_cpu_us_per_request(self) -> float:
        return self.python_cpu_us_per_request - self.background_cpu_us_per_request

    @property
    def cpu_us_per_job(self) -> float:
        """Return CPU microseconds per job over all processes at the full rate."""
        cpu_us_per_request = self.python_cpu_us_per_request + self.postgres_cpu_us_per_request
        return cpu_us_per_request * self.requests_per_s / self.jobs_per_s


@dataclass(frozen=True, slots=True)
class RefillAsked:
    """A step of `benchmarks.refill` (see its README), the slots of the array and the jobs in the backlog."""

    step: str
    slots: int
    waiting_jobs: int


@dataclass(frozen=True, slots=True)
class RefillAnswered:
    """Microseconds per filled slot: wall-clock time, and total CPU time of Python and PostgreSQL."""

    us_per_slot: float
    cpu_us_per_slot: float


@dataclass(frozen=True, slots=True)
class SubmitAsked:
    """The options of a submission: the number of jobs, and whether it goes through the store or the API."""

    through: str
    jobs: int


@dataclass(frozen=True, slots=True)
class SubmitAnswered:
    """Seconds to commit, and seconds for a bare COPY of the same number of rows."""

    seconds: float
    copy_seconds: float


@dataclass(frozen=True, slots=True)
class Results:
    """All results in a directory. `ignored` names the files of other benchmarks."""

    dispatch: Mapping[Asked, Answered]
    refill: Mapping[RefillAsked, RefillAnswered]
    submit: Mapping[SubmitAsked, SubmitAnswered]
    ignored: tuple[str, ...] = ()


def results_of(objects: Mapping[str, object]) -> Results:
    """Sort JSON objects (by file name) by benchmark. Raises InvalidInputError."""
    dispatch: list[tuple[Asked, Answered]] = []
    refill: list[tuple[RefillAsked, RefillAnswered]] = []
    submit: list[tuple[SubmitAsked, SubmitAnswered]] = []
    ignored = []
    for name, found in sorted(objects.items()):
        if not isinstance(found, dict):
            raise InvalidInputError(name, "one JSON object", type(found).__name__)
        if "echo_requests_per_s" in found:
            dispatch.append(_dispatch(name, found))
        elif "copy_seconds" in found:
            submit.append(_submit(name, found))
        elif steps := _refill(name, found):
            refill.extend(steps)
        else:
            ignored.append(name)
    return Results(_medians(dispatch), _medians(refill), _medians(submit), tuple(ignored))


def along(
    answers: Mapping[Asked, Answered], parameter: str, usual: Asked = Asked()
) -> tuple[list[float], list[Answered]]:
    """Return the runs that differ from the default options only in one parameter, by its value.

    >>> few, many = Asked(slots=1_000), Asked(slots=10_000)
    >>> answer = Answered(3000.0, 3000.0, 10.0, 40.0, 300.0, 40.0, 150.0)
    >>> along({many: answer, few: answer, Asked(slots=10_000, load=0.5): answer}, "slots")[0]
    [1000, 10000]
    """
    curve = sorted(
        (getattr(asked, parameter), answer)
        for asked, answer in answers.items()
        if replace(asked, **{parameter: getattr(usual, parameter)}) == usual
    )
    return [value for value, _ in curve], [answer for _, answer in curve]


def whole(number: str) -> int:
    """Parse a round number in the format of `benchmarks.refill`.

    >>> whole("10k"), whole("10m"), whole("300")
    (10000, 10000000, 300)
    """
    return int(number[:-1]) * ROUND_NUMBERS[number[-1]] if number[-1] in ROUND_NUMBERS else int(number)


def _dispatch(name: str, found: Mapping[str, object]) -> tuple[Asked, Answered]:
    asked = Asked(
        workers=_value(name, found, "workers", int),
        jobs_per_request=_value(name, found, "jobs_per_request", int),
        slots=_value(name, found, "slots", int),
        waiting_jobs=_value(name, found, "waiting_jobs", int),
        connections=_value(name, found, "connections", int),
        load=_value(name, found, "load", float),
    )
    return asked, Answered(*(_value(name, found, field.name, float) for field in fields(Answered)))


def _refill(name: str, found: Mapping[str, object]) -> list[tuple[RefillAsked, RefillAnswered]]:
    steps = []
    for key in found:
        if match := REFILL_KEY.fullmatch(key):
            step, slots, waiting = match.groups()
            asked = RefillAsked(step, whole(slots), whole(waiting))
            took_s, placed, python_us, postgres_us = (
                _value(name, found, f"{step}_{figure}_{slots}_slots_{waiting}", float)
                for figure in ("s", "placed", "python_us_per_slot", "postgres_us_per_slot")
            )
            steps.append((asked, RefillAnswered(1e6 * took_s / max(1.0, placed), python_us + postgres_us)))
    return steps


def _submit(name: str, found: Mapping[str, object]) -> tuple[SubmitAsked, SubmitAnswered]:
    asked = SubmitAsked(_value(name, found, "through", str), _value(name, found, "jobs", int))
    seconds = _value(name, found, "seconds", float)
    return asked, SubmitAnswered(seconds, _value(name, found, "copy_seconds", float))


def _value(name: str, found: Mapping[str, object], key: str, kind: type[Value]) -> Value:
    """Return a number in a file, which may be an integer. Raises InvalidInputError."""
    value = found.get(key)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return kind(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise InvalidInputError(f"{name}: {key}", expected, value)
    return value


Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer", Answered, RefillAnswered, SubmitAnswered)


def _medians(pairs: Iterable[tuple[Question, Answer]]) -> dict[Question, Answer]:
    """Return the median of each figure over the runs with the same options."""
    runs: dict[Question, list[Answer]] = defaultdict(list)
    for asked, answer in pairs:
        runs[asked].append(answer)
    return {asked: _median(answers) for asked, answers in runs.items()}


def _median(answers: Sequence[Answer]) -> Answer:
    columns: list[Any] = [median(column) for column in zip(*map(astuple, answers), strict=True)]
    return type(answers[0])(*columns)
