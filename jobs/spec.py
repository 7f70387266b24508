"""Validates the description of a submitted batch, without looking anything up. Pure.

A batch is a table with `app`, `qos`, `name`, `submitter`, `account`, `queue`, `level`, `deadline_s`, `user_priority`,
and its jobs in one of three forms:

    [jobs]        count identical jobs
    [[job]]       one kind of jobs per table, `count` of each (default 1)
    jobs_csv      a table with a job per row: jobs/table.py

In the last two, `[jobs]` has the defaults. `{i}` in a text is replaced by the job's index in the batch, from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.jobs import JobClass
from domain.ordering import Request, ServiceLevel
from domain.settings import FileSettings
from domain.submission import MAX_JOBS
from domain.units import BatchId, Flop, Seconds
from jobs.fields import Fields
from jobs.flaws import with_others
from jobs.requirements import JOB_FIELDS, InputSpec, JobSpec, StoredSize, parse_job
from jobs.table import Rows, TableJobs

MAX_NAME_CHARS = 200
MAX_QUEUE_CHARS = 32
MAX_AFTER = 20  # maximum number of batches that a batch can wait for, of each kind
LOWEST_PRIORITY = -1024
HIGHEST_PRIORITY = 1023

BATCH_FIELDS = (
    "app",
    "qos",
    "name",
    "submitter",
    "account",
    "queue",
    "level",
    "deadline_s",
    "user_priority",
    "after_ok",
    "after_any",
    "jobs",
    "job",
    "jobs_csv",
)


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A validated batch. `jobs` can be iterated repeatedly; each entry describes `count` identical jobs.

    With an empty `account`, the submitter's own is used. `deadline_s` counts from submission. Nothing is sent before
    all jobs of the batches in `after_ok` are valid and the batches in `after_any` have ended. `jobs_csv` names the file
    whose rows `with_rows` will add, or is empty.
    """

    app: str
    qos: QoS
    submitter: str
    name: str = ""
    account: str = ""
    queue: str = "normal"
    level: ServiceLevel = ServiceLevel.NORMAL
    deadline_s: Seconds | None = None
    user_priority: int = 0
    after_ok: tuple[BatchId, ...] = ()
    after_any: tuple[BatchId, ...] = ()
    jobs: Iterable[JobSpec] = ()
    jobs_csv: str = ""
    defaults: Mapping[str, object] | None = None  # the [jobs] table, for rows of a CSV file


MOST_CLASSES = 100


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The totals of a batch: its jobs, the work of all instances that its quorums need, and its input files.

    `delay_bound_s` and `request` are maxima over its jobs; `shortest_bound_s` is the minimum delay bound; `jobs_of` is
    the number of jobs by size and quorum; `nbytes` is the approximate size in the database. `classes` are the first
    MOST_CLASSES that hosts may treat differently. `ends` are the first and the last jobs.
    """

    jobs: int
    flop: Flop
    delay_bound_s: Seconds
    shortest_bound_s: Seconds
    jobs_of: Mapping[tuple[Flop, int], int]
    nbytes: int = 0
    inputs: tuple[InputSpec, ...] = ()  # without duplicates
    request: Request = field(default=Request())
    classes: tuple[JobClass, ...] = ()
    ends: tuple[JobSpec, ...] = ()

    @property
    def quorum_total(self) -> int:
        """Return the number of instances that the quorums need."""
        return sum(quorum * count for (_, quorum), count in self.jobs_of.items())

    @property
    def job_flop(self) -> Flop:
        """Return the mean work per job."""
        return Flop(sum(flop * count for (flop, _), count in self.jobs_of.items()) / self.jobs)


def parse_batch(values: Mapping[str, object], *, files: FileSettings = FileSettings()) -> BatchSpec:
    """Return the batch described by a table. Raises InvalidInputError with field, expected value and actual value.

    >>> spec = parse_batch({"app": "pi", "qos": "afap", "submitter": "ada", "jobs": {"count": 3, "fpops_est": 1e12}})
    >>> [(job.count, job.job_class.quorum) for job in spec.jobs]
    [(3, 1)]
    """
    fields = Fields(values, known=BATCH_FIELDS)
    qos = QoS(fields.choice("qos", list(QoS)))
    spec = BatchSpec(
        app=_name(fields, "app"),
        qos=qos,
        submitter=_name(fields, "submitter"),
        name=fields.text("name", most=MAX_NAME_CHARS, default=""),
        account=fields.text("account", most=MAX_NAME_CHARS, default=""),
        queue=fields.text("queue", most=MAX_QUEUE_CHARS, default="normal"),
        level=ServiceLevel(fields.choice("level", list(ServiceLevel), default=ServiceLevel.NORMAL)),
        deadline_s=_deadline_s(fields, qos),
        # the permission for values above 0 is checked later, once the submitter is known
        user_priority=fields.whole("user_priority", LOWEST_PRIORITY, HIGHEST_PRIORITY, default=0),
        after_ok=tuple(map(BatchId, fields.ids("after_ok", most=MAX_AFTER))),
        after_any=tuple(map(BatchId, fields.ids("after_any", most=MAX_AFTER))),
    )
    return _with_jobs(spec, fields, files)


def parse_for_all_errors(values: Mapping[str, object], *, files: FileSettings = FileSettings()) -> BatchSpec:
    """Return the batch as `parse_batch` does. An error has others that are found in the same table."""
    try:
        return parse_batch(values, files=files)
    except InvalidInputError as error:
        raise with_others(error, values, lambda corrected: parse_batch(corrected, files=files)) from None


def with_rows(spec: BatchSpec, rows: Rows, *, files: FileSettings = FileSettings()) -> BatchSpec:
    """Return the batch with one job per row of its table.

    `rows()` opens the file again: all rows are checked here and read again when the batch is stored. Raises
    InvalidInputError naming the row (row 1 follows the heading).
    """
    if not spec.jobs_csv:
        raise InvalidInputError("jobs_csv", "the name of a CSV file", None)
    return replace(spec, jobs=_Numbered(TableJobs(rows, spec.defaults or {}, files)))


def size_of(spec: BatchSpec) -> BatchSize:
    """Return the totals; flop = sum of count * fpops_est * quorum. Raises InvalidInputError if the batch is too large.

    >>> size = size_of(parse_batch({"app": "pi", "qos": "afap", "submitter": "ada",
    ...                             "jobs": {"count": 3, "fpops_est": 1e12, "quorum": 2}}))
    >>> size.jobs, size.quorum_total, size.flop, size.jobs_of
    (3, 6, 6000000000000.0, {(1000000000000.0, 2): 3})
    """
    jobs, flop = 0, 0.0
    delay_bound_s, shortest_bound_s = Seconds(0.0), Seconds(math.inf)
    jobs_of: dict[tuple[Flop, int], int] = {}
    request = Request(0.0)
    inputs: dict[InputSpec, None] = {}
    stored = StoredSize()
    classes: dict[tuple[float, ...], JobClass] = {}
    ends: tuple[JobSpec, ...] = ()
    for job in spec.jobs:
        stored.add(job)
        ends = (ends[0] if ends else job, job)
        if len(classes) < MOST_CLASSES:
            one = job.job_class
            needs = one.fpops_est_flop, one.memory_bytes, one.disk_bytes, one.ncpus, one.delay_bound_s
            classes.setdefault(needs, one)
        jobs += job.count
        of = job.job_class.fpops_est_flop, job.job_class.quorum
        jobs_of[of] = jobs_of.get(of, 0) + job.count
        delay_bound_s = max(delay_bound_s, job.job_class.delay_bound_s)
        shortest_bound_s = min(shortest_bound_s, job.job_class.delay_bound_s)
        request = _most(request, job.job_class)
        flop += job.count * of[0] * of[1]
        inputs.update(dict.fromkeys((*job.shared_inputs, *job.own_inputs)))
        if jobs > MAX_JOBS:
            raise InvalidInputError("jobs", f"at most {MAX_JOBS} jobs in a batch", f"{jobs} or more")
    if jobs == 0:
        raise InvalidInputError("jobs_csv" if spec.jobs_csv else "jobs", "at least one job", 0)
    bounds_s = delay_bound_s, shortest_bound_s
    kinds = tuple(classes.values())
    return BatchSize(jobs, Flop(flop), *bounds_s, jobs_of, stored.nbytes, tuple(inputs), request, kinds, ends)


def _most(request: Request, job_class: JobClass) -> Request:
    """Return, for each resource, the larger of the amount in the request and the amount in the class."""
    asked = (job_class.ncpus, job_class.memory_bytes, job_class.disk_bytes)
    if asked[0] <= request.cores and asked[1] <= request.memory_bytes and asked[2] <= request.disk_bytes:
        return request
    cores, memory_bytes, disk_bytes = map(max, asked, (request.cores, request.memory_bytes, request.disk_bytes))
    return Request(cores, memory_bytes, disk_bytes)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Jobs with `{i}` replaced in the names of their files, computed again at each iteration."""

    jobs: Iterable[JobSpec]

    def __iter__(self) -> Iterator[JobSpec]:
        index = 0
        for job in self.jobs:
            yield from job.numbered(index)
            index += job.count


def _with_jobs(spec: BatchSpec, fields: Fields, files: FileSettings) -> BatchSpec:
    given = fields.table("jobs")
    defaults = Fields(given, known=JOB_FIELDS, where="jobs")
    if fields.has("job") and fields.has("jobs_csv"):
        raise InvalidInputError("jobs_csv", "either [[job]] tables or a CSV file, not both", "both")
    several = fields.has("job") or fields.has("jobs_csv")
    if several and defaults.has("count"):
        raise InvalidInputError("jobs.count", "no count together with [[job]] tables or a CSV file", given["count"])
    if fields.has("jobs_csv"):
        return replace(spec, jobs_csv=_name(fields, "jobs_csv"), defaults=given)
    if not fields.has("job"):
        count = defaults.whole("count", 1, MAX_JOBS)
        own = Fields({"count": count}, known=("count",), where="jobs")
        return replace(spec, jobs=_numbered(parse_job(own, defaults, files)))
    tables = enumerate(fields.tables("job"))
    jobs = [
        parse_job(Fields(table, known=JOB_FIELDS, where=f"job[{position}]"), defaults, files)
        for position, table in tables
    ]
    return replace(spec, jobs=_numbered(*jobs))


def _numbered(*jobs: JobSpec) -> Iterable[JobSpec]:
    varies = any(next(job.numbered(0)) is not job for job in jobs)
    return _Numbered(jobs) if varies else jobs


def _name(fields: Fields, name: str) -> str:
    value = fields.text(name, most=MAX_NAME_CHARS)
    if not value:
        raise InvalidInputError(fields.path(name), "a name", value)
    return value


def _deadline_s(fields: Fields, qos: QoS) -> Seconds | None:
    if qos is QoS.SHORT_DEADLINE:
        return Seconds(fields.bounded("deadline_s"))
    if fields.has("deadline_s"):
        value = fields.bounded("deadline_s")
        expected = f"none with this service ({qos}): leave it empty, or choose a short deadline ({QoS.SHORT_DEADLINE})"
        raise InvalidInputError("deadline_s", expected, value)
    return None
