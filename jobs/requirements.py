"""Validates the table of one job: its class, its own and shared fields, and its size in the database. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Generic, TypeVar

from domain.errors import InvalidInputError
from domain.jobs import JobClass, Output, ValidatorKind
from domain.settings import FileSettings
from domain.submission import INDEX, MAX_JOBS
from domain.units import DAY_S, BatchId, Flop, JobClassId, Seconds
from jobs.fields import Fields
from wire.uploads import valid_file_name

MAX_COMMAND_LINE_CHARS = 10_000
MAX_QUORUM = 20
MAX_INSTANCES = 1000
MAX_FILES = 100  # maximum number of inputs, and of outputs, per job
MAX_PATH_CHARS = 4096
HR_TYPES = (0, 2)

DEFAULT_MEMORY_BYTES = 5e8
DEFAULT_DISK_BYTES = 1e9
DEFAULT_DELAY_BOUND_S = 7 * DAY_S
DEFAULT_BOUND_FACTOR = 10.0  # default ratio of fpops_bound to fpops_est
DEFAULT_MAX_ERRORS = 3
DEFAULT_MAX_INSTANCES = 10

COLUMNS = (  # of a CSV file
    "command_line",
    "count",
    "delay_bound_s",
    "disk_bytes",
    "fpops_bound",
    "fpops_est",
    "hr_type",
    "max_errors",
    "max_instances",
    "memory_bytes",
    "ncpus",
    "quorum",
)
JOB_FIELDS = (*COLUMNS, "inputs", "outputs", "validator")


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A job's input file: either a `path` to register, or the `name` of a registered file."""

    open_name: str
    path: str = ""
    name: str = ""
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A number of identical jobs (`count`). `job_class` has no ids and no inputs yet.

    `shared_inputs` are the batch's inputs, used unless a job has its own; `own_inputs` are from this job's table.
    """

    count: int
    command_line: str
    job_class: JobClass
    shared_inputs: tuple[InputSpec, ...] = ()
    own_inputs: tuple[InputSpec, ...] = ()

    def command_line_of(self, index: int) -> str:
        """Return the command line of the job with this index in its batch.

        >>> own = Fields({"fpops_est": 1e12, "command_line": "--part {i}"}, known=JOB_FIELDS)
        >>> parse_job(own, Fields({}, known=()), FileSettings()).command_line_of(7)
        '--part 7'
        """
        return self.command_line.replace(INDEX, str(index))


def parse_job(own: Fields, shared: Fields, files: FileSettings) -> JobSpec:
    """Return the job that a table describes; fields missing in `own` come from `shared`. Raises InvalidInputError."""

    def of(name: str) -> Fields:
        return own if own.has(name) or not shared.has(name) else shared

    fpops_est = of("fpops_est").bounded("fpops_est")
    quorum = of("quorum").whole("quorum", 1, MAX_QUORUM, default=1)
    validator, tolerance = _validator(of("validator"))
    job_class = JobClass(
        JobClassId(0),
        BatchId(0),
        fpops_est_flop=Flop(fpops_est),
        fpops_bound_flop=Flop(_fpops_bound(of("fpops_bound"), fpops_est)),
        memory_bytes=of("memory_bytes").bounded("memory_bytes", default=DEFAULT_MEMORY_BYTES),
        disk_bytes=of("disk_bytes").bounded("disk_bytes", default=DEFAULT_DISK_BYTES),
        delay_bound_s=Seconds(of("delay_bound_s").bounded("delay_bound_s", default=DEFAULT_DELAY_BOUND_S)),
        ncpus=of("ncpus").bounded("ncpus", default=1.0),
        quorum=quorum,
        max_errors=of("max_errors").whole("max_errors", 1, MAX_INSTANCES, default=DEFAULT_MAX_ERRORS),
        max_instances=_max_instances(of("max_instances"), quorum),
        hr_type=of("hr_type").whole("hr_type", *HR_TYPES, default=0),
        validator=validator,
        tolerance=tolerance,
        outputs=_outputs(of("outputs"), files),
    )
    return JobSpec(
        count=parse_count(own),
        command_line=parse_command_line(of("command_line")),
        job_class=job_class,
        shared_inputs=() if own.has("inputs") else _inputs(shared),
        own_inputs=_inputs(own),
    )


def parse_count(fields: Fields) -> int:
    """Return how many jobs a table describes."""
    return fields.whole("count", 1, MAX_JOBS, default=1)


def parse_command_line(fields: Fields) -> str:
    """Return a table's command line, with `{i}` not yet replaced."""
    command_line = fields.text("command_line", most=MAX_COMMAND_LINE_CHARS, default="")
    if len(command_line.replace(INDEX, str(MAX_JOBS))) > MAX_COMMAND_LINE_CHARS:
        expected = f"at most {MAX_COMMAND_LINE_CHARS} characters with each {INDEX} replaced"
        raise InvalidInputError(fields.path("command_line"), expected, command_line)
    return command_line


def _fpops_bound(fields: Fields, fpops_est: float) -> float:
    if not fields.has("fpops_bound"):
        return DEFAULT_BOUND_FACTOR * fpops_est
    bound = fields.bounded("fpops_bound")
    if bound < fpops_est:
        raise InvalidInputError(fields.path("fpops_bound"), f"a number of at least fpops_est ({fpops_est:g})", bound)
    return bound


def _max_instances(fields: Fields, quorum: int) -> int:
    most = fields.whole("max_instances", 1, MAX_INSTANCES, default=max(DEFAULT_MAX_INSTANCES, quorum))
    if most < quorum:
        raise InvalidInputError(fields.path("max_instances"), f"at least the quorum ({quorum})", most)
    return most


def _validator(fields: Fields) -> tuple[ValidatorKind, float]:
    path = fields.path("validator")
    table = Fields(fields.table("validator"), known=("kind", "tolerance"), where=path)
    kind = ValidatorKind(table.choice("kind", list(ValidatorKind), default=ValidatorKind.BITWISE))
    if kind is ValidatorKind.TOLERANCE:
        return kind, table.bounded("tolerance")
    if table.has("tolerance"):
        given = table.bounded("tolerance")
        raise InvalidInputError(f"{path}.tolerance", f"no tolerance with validator kind {kind}", given)
    return kind, 0.0


def _outputs(fields: Fields, files: FileSettings) -> tuple[Output, ...]:
    outputs: list[Output] = []
    for position, table in enumerate(fields.tables("outputs")):
        where = f"{fields.path('outputs')}[{position}]"
        entry = Fields(table, known=("name", "max_bytes", "optional"), where=where)
        name = _file_name(entry, "name", None)
        most = entry.whole("max_bytes", 1, files.max_output_bytes)
        outputs.append(Output(name, most, entry.flag("optional", default=False)))
    _must_differ(fields.path("outputs"), [output.name for output in outputs])
    return tuple(outputs)


def _inputs(fields: Fields) -> tuple[InputSpec, ...]:
    inputs: list[InputSpec] = []
    for position, table in enumerate(fields.tables("inputs")):
        where = f"{fields.path('inputs')}[{position}]"
        entry = Fields(table, known=("path", "name", "open_name", "sticky"), where=where)
        if entry.has("path") == entry.has("name"):
            raise InvalidInputError(where, "a path, or the name of a registered file", dict(table))
        path = entry.text("path", most=MAX_PATH_CHARS, default="")
        name = _file_name(entry, "name", "") if entry.has("name") else ""
        open_name = _file_name(entry, "open_name", name or PurePath(path).name)
        inputs.append(InputSpec(open_name, path, name, entry.flag("sticky", default=False)))
    _must_differ(fields.path("inputs"), [entry.open_name for entry in inputs])
    return tuple(inputs)


def _file_name(fields: Fields, name: str, default: str | None) -> str:
    value = fields.text(name, most=255, default=default)
    if not valid_file_name(value):
        raise InvalidInputError(
            fields.path(name), "a file name without / \\ % < > & or .., and without a leading dot", value
        )
    return value


def _must_differ(path: str, names: list[str]) -> None:
    if len(names) > MAX_FILES:
        raise InvalidInputError(path, f"at most {MAX_FILES} files", len(names))
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(path, "distinct names", name)


LEAST_CHARS = 64  # minimum length of a shared command line; a shorter one is cheaper to store with its job
MOST_REMEMBERED = 1000  # number of recent texts remembered

Shared = TypeVar("Shared")
_Key = tuple[str, tuple[InputSpec, ...]]


class SharedTexts(Generic[Shared]):
    """Finds texts that jobs of a batch share. `make` creates the shared entry when a text occurs a second time."""

    def __init__(self, make: Callable[[JobSpec], Shared]) -> None:
        self._make = make
        self._seen: OrderedDict[_Key, Shared | None] = OrderedDict()

    def of(self, job: JobSpec) -> Shared | None:
        """Return a job's shared entry; None if its command line and inputs are stored with the job itself."""
        if len(job.command_line) < LEAST_CHARS and not job.own_inputs:
            return None
        key = (job.command_line, job.own_inputs)
        came_before = key in self._seen
        shared = self._seen.get(key)
        if shared is None and (came_before or job.count > 1):
            shared = self._make(job)
        self._seen[key] = shared
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return shared


JOB_BYTES = 180
INSTANCE_BYTES = 320
CLASS_BYTES = 300
FILE_BYTES = 160  # per input or output, excluding names


class StoredSize:
    """Adds up the stored size of a batch. Shared texts are stored, and counted, only once."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._shared = SharedTexts(self._add_shared)
        self._classes: dict[tuple[JobClass, tuple[InputSpec, ...]], None] = {}
        self._last: JobSpec | None = None

    def add(self, job: JobSpec) -> None:
        """Add one table or row of jobs."""
        of_one = JOB_BYTES + INSTANCE_BYTES * job.job_class.quorum
        if not self._shared.of(job):
            of_one += _text_bytes(job)
        self.nbytes += job.count * of_one
        self._add_class(job)

    def _add_shared(self, job: JobSpec) -> bool:
        self.nbytes += _text_bytes(job)
        return True

    def _add_class(self, job: JobSpec) -> None:
        last, self._last = self._last, job
        if last is not None and last.job_class is job.job_class and last.shared_inputs is job.shared_inputs:
            return
        kind = (job.job_class, job.shared_inputs)
        if kind not in self._classes:
            self._classes[kind] = None
            outputs = sum(FILE_BYTES + len(output.name.encode()) for output in job.job_class.outputs)
            self.nbytes += CLASS_BYTES + outputs + _input_bytes(job.shared_inputs)


def _text_bytes(job: JobSpec) -> int:
    return len(job.command_line.encode()) + _input_bytes(job.own_inputs)


def _input_bytes(inputs: Iterable[InputSpec]) -> int:
    return sum(FILE_BYTES + len(f"{one.name or one.path}{one.open_name}".encode()) for one in inputs)
