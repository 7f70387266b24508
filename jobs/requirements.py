"""Validates the table of one job: its class, its own and shared fields, and its size in the database. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Generic, TypeVar

from domain.errors import InvalidInputError
from domain.jobs import JobClass, Output, ValidatorKind
from domain.settings import FileSettings
from domain.submission import INDEX, MAX_JOBS
from domain.units import DAY_S, BatchId, Flop, JobClassId, Seconds
from jobs.fields import Fields
from wire.uploads import valid_file_name, valid_open_name

MAX_COMMAND_LINE_CHARS = 10_000
MAX_QUORUM = 20
MAX_INSTANCES = 1000
MAX_FILES = 100  # maximum number of inputs, and of outputs, per job
MAX_PATH_CHARS = 4096
HR_TYPES = (0, 2)
_LONGEST_INDEX = str(MAX_JOBS - 1)

DEFAULT_NEEDS = {"memory_bytes": 5e8, "disk_bytes": 1e9, "delay_bound_s": 7 * DAY_S}  # also what forms suggest
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
    """`count` jobs that differ only in their number. `job_class` has no ids and no inputs yet.

    A job reads `shared_inputs`, those of [jobs], and `own_inputs`. `{i}` in a text is not yet replaced.
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

    def numbered(self, index: int) -> Iterator[JobSpec]:
        """Yield the jobs from that index on; one by one with `{i}` replaced in file names, if they have any."""
        outputs = self.job_class.outputs
        if not any(INDEX in one.name for one in outputs) and not any(map(_has_index, self.own_inputs)):
            yield self
            return
        for number in map(str, range(index, index + self.count)):
            made = [replace(one, name=one.name.replace(INDEX, number)) for one in outputs]
            inputs = tuple(
                replace(
                    one,
                    open_name=one.open_name.replace(INDEX, number),
                    path=one.path.replace(INDEX, number),
                    name=one.name.replace(INDEX, number),
                )
                for one in self.own_inputs
            )
            line = self.command_line.replace(INDEX, number)
            yield JobSpec(1, line, replace(self.job_class, outputs=tuple(made)), self.shared_inputs, inputs)


def _has_index(one: InputSpec) -> bool:
    return INDEX in one.open_name or INDEX in one.path or INDEX in one.name


def parse_job(own: Fields, shared: Fields, files: FileSettings) -> JobSpec:
    """Return the job that a table describes; fields missing in `own` come from `shared`. Raises InvalidInputError."""

    command_line = parse_command_line(own if own.has("command_line") else shared)
    return JobSpec(parse_count(own), command_line, parse_class(own, shared, files), *parse_inputs(own, shared))


def parse_class(own: Fields, shared: Fields, files: FileSettings) -> JobClass:
    """Return the class of the job a table describes. Raises InvalidInputError."""

    def of(name: str) -> Fields:
        return own if own.has(name) or not shared.has(name) else shared

    fpops_est = of("fpops_est").bounded("fpops_est")
    quorum = of("quorum").whole("quorum", 1, MAX_QUORUM, default=1)
    validator, tolerance = _validator(of("validator"))
    return JobClass(
        JobClassId(0),
        BatchId(0),
        fpops_est_flop=Flop(fpops_est),
        fpops_bound_flop=Flop(_fpops_bound(of("fpops_bound"), fpops_est)),
        memory_bytes=of("memory_bytes").bounded("memory_bytes", default=DEFAULT_NEEDS["memory_bytes"]),
        disk_bytes=of("disk_bytes").bounded("disk_bytes", default=DEFAULT_NEEDS["disk_bytes"]),
        delay_bound_s=Seconds(of("delay_bound_s").bounded("delay_bound_s", default=DEFAULT_NEEDS["delay_bound_s"])),
        ncpus=of("ncpus").bounded("ncpus", default=1.0),
        quorum=quorum,
        max_errors=of("max_errors").whole("max_errors", 1, MAX_INSTANCES, default=DEFAULT_MAX_ERRORS),
        max_instances=_max_instances(of("max_instances"), quorum),
        hr_type=of("hr_type").whole("hr_type", *HR_TYPES, default=0),
        validator=validator,
        tolerance=tolerance,
        outputs=_outputs(of("outputs"), files),
    )


def parse_inputs(
    own: Fields, shared: Fields, varying: Collection[int] = ()
) -> tuple[tuple[InputSpec, ...], tuple[InputSpec, ...]]:
    """Return the inputs that a job shares with others, and its own.

    Those of `shared` are kept, unless `own` has one under the same name. One at a position in `varying`, or with `{i}`,
    is a job's own.
    """
    added = _inputs(own)
    names = {one.open_name for one in added}
    kept = [(place, one) for place, one in enumerate(_inputs(shared)) if one.open_name not in names]
    common = tuple(one for place, one in kept if place not in varying and not _has_index(one))
    mine = (*(one for _, one in kept if one not in common), *added)
    _must_differ(own.path("inputs"), [one.open_name for one in (*common, *mine)])
    return common, mine


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
        name = _open_name(entry, "name", None)
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
        open_name = _open_name(entry, "open_name", name or PurePath(path).name)
        inputs.append(InputSpec(open_name, path, name, entry.flag("sticky", default=False)))
    _must_differ(fields.path("inputs"), [entry.open_name for entry in inputs])
    return tuple(inputs)


def _file_name(fields: Fields, name: str, default: str | None) -> str:
    value = fields.text(name, most=255, default=default)
    if not valid_file_name(value.replace(INDEX, _LONGEST_INDEX)):
        raise InvalidInputError(fields.path(name), "a file name without / \\ % < > & or .., no leading dot", value)
    return value


def _open_name(fields: Fields, name: str, default: str | None) -> str:
    """Return the name under which a program opens a file, which may have folders: `out/model.nc`."""
    value = fields.text(name, most=255, default=default)
    if not valid_open_name(value.replace(INDEX, _LONGEST_INDEX)):
        expected = "a file name, with folders or without: no \\ % < > & or .., no leading / or dot"
        raise InvalidInputError(fields.path(name), expected, value)
    return value


def _must_differ(path: str, names: list[str]) -> None:
    if len(names) > MAX_FILES:
        raise InvalidInputError(path, f"at most {MAX_FILES} files", len(names))
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(path, "distinct names", name)
        if any(other.startswith(f"{name}/") for other in names):
            raise InvalidInputError(path, "no file with the name of a folder", name)


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
