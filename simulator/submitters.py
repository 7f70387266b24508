"""Parses the batches of a scenario file and turns them into submissions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.ordering import ServiceLevel
from domain.submission import MAX_JOBS
from domain.units import DAY_S, HOUR_S, BatchId, Instant, Seconds
from jobs.fields import Fields
from simulator.ports import HeldInstance, Submission

KNOWN = (
    "name",
    "app",
    "submitter",
    "qos",
    "at_hours",
    "jobs",
    "fpops_est",
    "delay_bound_days",
    "deadline_hours",
    "quorum",
    "memory_gigabytes",
    "ncpus",
    "times",
    "every_hours",
)
MOST_TIMES = 100_000
MOST_FLOP = 1e24  # maximum work of one job: thousands of years on the fastest host
OUTPUT = {"name": "out", "max_bytes": 10_000}


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A batch to be submitted. `batch_id`: that of a waiting batch of the project which it stands for, with the
    instances that hosts have in progress (`held`), its place by logical time, in seconds after the start, and the usual
    turnaround of its results.
    """

    name: str
    app: str
    submitter: str
    qos: QoS
    at_s: float
    jobs: int
    fpops_est: float
    delay_bound_s: Seconds
    deadline_s: Seconds | None = None
    quorum: int = 1
    memory_bytes: float = 5e8
    ncpus: float = 1.0
    batch_id: BatchId | None = None
    level: ServiceLevel = ServiceLevel.NORMAL
    queue: str = "normal"
    user_priority: int = 0
    held: tuple[HeldInstance, ...] = ()
    logical_end_s: float | None = None
    median_turnaround_s: Seconds | None = None

    def submission(self, starts_at: Instant, *, with_outputs: bool) -> Submission:
        """Return the batch as a submitter posts it. A job's command line is the batch's name and the job's number,
        which determine its true size.
        """
        jobs: dict[str, object] = {
            "count": self.jobs,
            "command_line": f"{self.name} {{i}}",
            "fpops_est": self.fpops_est,
            "delay_bound_s": self.delay_bound_s,
            "quorum": self.quorum,
            "memory_bytes": self.memory_bytes,
            "ncpus": self.ncpus,
            "max_errors": 20,  # a job must not fail by chance: that would end its batch too early
            "max_instances": 100,
        }
        if with_outputs:
            jobs["outputs"] = [OUTPUT]
        batch: dict[str, object] = {
            "app": self.app,
            "qos": str(self.qos),
            "submitter": self.submitter,
            "name": self.name,
            "level": str(self.level),
            "queue": self.queue,
            "user_priority": self.user_priority,
            "jobs": jobs,
        }
        if self.deadline_s is not None:
            batch["deadline_s"] = self.deadline_s
        logical_end_at = None if self.logical_end_s is None else Instant(starts_at + self.logical_end_s)
        return Submission(Instant(starts_at + self.at_s), batch, self.held, logical_end_at, self.median_turnaround_s)


def parse_batches(tables: Iterable[Mapping[str, object]], *, delay_bound_s: Seconds) -> list[BatchPlan]:
    """Return the batches defined by `[[batch]]` tables in chronological order. Raises InvalidInputError.

    If a table defines `times` batches, `every_hours` apart, a number is appended to their names.

    >>> tables = [{"name": "a", "qos": "afap", "jobs": 2, "fpops_est": 1e13, "times": 2, "every_hours": 24}]
    >>> [(plan.name, plan.at_s) for plan in parse_batches(tables, delay_bound_s=Seconds(86400.0))]
    [('a-1', 0.0), ('a-2', 86400.0)]
    """
    plans: list[BatchPlan] = []
    for number, values in enumerate(tables):
        plans.extend(_plans(Fields(values, known=KNOWN, where=f"batch[{number}]"), delay_bound_s))
    return in_order(plans)


def in_order(plans: Iterable[BatchPlan]) -> list[BatchPlan]:
    """Sort the batches by time, then by name. Raises InvalidInputError if two have the same name."""
    ordered = sorted(plans, key=lambda plan: (plan.at_s, plan.name))
    seen: set[str] = set()
    for plan in ordered:
        if plan.name in seen:
            raise InvalidInputError("batch.name", "unique names", plan.name)
        seen.add(plan.name)
    return ordered


def _plans(fields: Fields, delay_bound_s: Seconds) -> Iterator[BatchPlan]:
    qos = QoS(fields.choice("qos", list(QoS)))
    plan = BatchPlan(
        name=_name(fields, "name"),
        app=_name(fields, "app", "app"),
        submitter=_name(fields, "submitter", "submitter"),
        qos=qos,
        at_s=fields.number("at_hours", default=0.0) * HOUR_S,
        jobs=fields.whole("jobs", 1, MAX_JOBS),
        fpops_est=_fpops_est(fields),
        delay_bound_s=Seconds(fields.number("delay_bound_days", above=0.0, default=delay_bound_s / DAY_S) * DAY_S),
        deadline_s=_deadline_s(fields, qos),
        quorum=fields.whole("quorum", 1, 20, default=1),
        memory_bytes=fields.number("memory_gigabytes", above=0.0, default=0.5) * 1e9,
        ncpus=fields.number("ncpus", above=0.0, default=1.0),
    )
    times = fields.whole("times", 1, MOST_TIMES, default=1)
    if times == 1:
        if fields.has("every_hours"):
            expected = "no value unless times is above 1"
            raise InvalidInputError(fields.path("every_hours"), expected, fields.number("every_hours"))
        yield plan
        return
    every_s = fields.number("every_hours", above=0.0) * HOUR_S
    for number in range(times):
        yield replace(plan, name=f"{plan.name}-{number + 1}", at_s=plan.at_s + number * every_s)


def _name(fields: Fields, name: str, default: str | None = None) -> str:
    value = fields.text(name, most=100, default=default)
    if not value or "{" in value:
        raise InvalidInputError(fields.path(name), "a name without {", value)
    return value


def _fpops_est(fields: Fields) -> float:
    value = fields.number("fpops_est", above=0.0)
    if value > MOST_FLOP:
        raise InvalidInputError(fields.path("fpops_est"), f"at most {MOST_FLOP:g}", value)
    return value


def _deadline_s(fields: Fields, qos: QoS) -> Seconds | None:
    if qos is QoS.SHORT_DEADLINE:
        return Seconds(fields.number("deadline_hours", above=0.0) * HOUR_S)
    if fields.has("deadline_hours"):
        expected = f"no deadline with qos {qos}; only {QoS.SHORT_DEADLINE} has one"
        raise InvalidInputError(fields.path("deadline_hours"), expected, fields.number("deadline_hours"))
    return None
