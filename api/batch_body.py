"""The body of a submission as the OpenAPI document describes it, for generated clients.

`jobs/spec.py` parses and checks the body; what depends on several fields only the server checks. Pure.
"""

from __future__ import annotations

from typing import Annotated, Any, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from domain.batches import QoS
from domain.bounds import BOUNDS
from domain.jobs import ValidatorKind
from domain.ordering import ServiceLevel
from domain.submission import MAX_JOBS
from jobs.requirements import MAX_COMMAND_LINE_CHARS, MAX_FILES, MAX_INSTANCES, MAX_PATH_CHARS, MAX_QUORUM
from jobs.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY, MAX_AFTER, MAX_NAME_CHARS, MAX_QUEUE_CHARS

MAX_FILE_NAME_CHARS = 255
Kind = Any  # a type for msgspec


def _number(name: str, meaning: str) -> Kind:
    bound = BOUNDS[name]
    return Annotated[float, Meta(ge=bound.low, le=bound.high, description=meaning)]


def _whole(low: int, high: int | None, meaning: str) -> Kind:
    return Annotated[int, Meta(ge=low, le=high, description=meaning)]


def _text(most: int, meaning: str, *, least: int = 0) -> Kind:
    return Annotated[str, Meta(min_length=least or None, max_length=most, description=meaning)]


def _listed(kind: Kind, most: int) -> Kind:
    return Annotated[list[kind], Meta(max_length=most)]


def _table(name: str, about: str, needed: dict[str, Kind], optional: dict[str, Kind]) -> Kind:
    """Return the type of an object that has all `needed` fields, and no others than these and the optional ones."""
    fields: list[Any] = [*needed.items(), *((field, Union[kind, UnsetType], UNSET) for field, kind in optional.items())]  # noqa: UP007
    return msgspec.defstruct(name, fields, namespace={"__doc__": about}, forbid_unknown_fields=True, module=__name__)


BatchInput = _table(
    "BatchInput",
    "An input file: `name` is that of a file uploaded to /files.",
    {},
    {
        "name": _text(MAX_FILE_NAME_CHARS, "Name of an uploaded file; {i} is the job's number.", least=1),
        "open_name": _text(MAX_FILE_NAME_CHARS, "Name under which the program opens it; default: `name`."),
        "sticky": Annotated[bool, Meta(description="Hosts keep it for later jobs.")],
        "path": _text(MAX_PATH_CHARS, "Only in files for `muster batch submit`."),
    },
)
BatchOutput = _table(
    "BatchOutput",
    "A file that the program writes.",
    {
        "name": _text(MAX_FILE_NAME_CHARS, "The file's name; {i} is the job's number.", least=1),
        "max_bytes": _whole(1, None, "Larger outputs are refused."),
    },
    {"optional": Annotated[bool, Meta(description="A job without it is no error.")]},
)
BatchValidator = _table(
    "BatchValidator",
    "How results are compared: bitwise, within a relative tolerance, or not at all.",
    {},
    {"kind": ValidatorKind, "tolerance": _number("tolerance", "Only with kind tolerance, which requires it.")},
)
BatchJobTable = _table(
    "BatchJobTable",
    "`count` jobs, or defaults for the jobs of `job` or `jobs_csv`. Each job needs `fpops_est`, from either.",
    {},
    {
        "count": _whole(1, MAX_JOBS, "How many jobs; in `jobs` only without `job` and `jobs_csv`."),
        "command_line": _text(MAX_COMMAND_LINE_CHARS, "Arguments; {i} is the job's number, from 0."),
        "fpops_est": _number("fpops_est", "Estimated operations of one job."),
        "fpops_bound": _number("fpops_bound", "Hosts abort a job after this many operations."),
        "memory_bytes": _number("memory_bytes", "Memory of one job."),
        "disk_bytes": _number("disk_bytes", "Disk space of one job."),
        "delay_bound_s": _number("delay_bound_s", "Longest time between sending and reporting."),
        "ncpus": _number("ncpus", "Processors of one job."),
        "quorum": _whole(1, MAX_QUORUM, "Results that must agree."),
        "max_errors": _whole(1, MAX_INSTANCES, "The job fails after this many errors."),
        "max_instances": _whole(1, MAX_INSTANCES, "Largest number of instances."),
        "hr_type": _whole(0, 2, "2: only hosts with the same system and processor vendor."),
        "validator": BatchValidator,
        "inputs": _listed(BatchInput, MAX_FILES),
        "outputs": _listed(BatchOutput, MAX_FILES),
    },
)
_IDS = _listed(Annotated[int, Meta(ge=1, le=2**62 - 1)], MAX_AFTER)
NewBatchBody = _table(
    "NewBatchBody",
    "A batch. Its jobs are `jobs` with a count, the tables in `job`, or the rows of the uploaded table `jobs_csv`.",
    {"app": _text(MAX_NAME_CHARS, "Name of the app.", least=1), "qos": QoS},
    {
        "jobs": BatchJobTable,
        "job": _listed(BatchJobTable, MAX_JOBS),
        "jobs_csv": _text(MAX_NAME_CHARS, "Name of an uploaded CSV or JSON Lines table.", least=1),
        "name": _text(MAX_NAME_CHARS, "A label."),
        "submitter": _text(MAX_NAME_CHARS, "Default: the caller's own.", least=1),
        "account": _text(MAX_NAME_CHARS, "Default: the submitter's own."),
        "queue": _text(MAX_QUEUE_CHARS, "One of the names in ordering.queues."),
        "level": ServiceLevel,
        "deadline_s": _number("deadline_s", "Seconds from now, only with qos short_deadline."),
        "user_priority": _whole(LOWEST_PRIORITY, HIGHEST_PRIORITY, "Above 0 only with the permission `raise`."),
        "after_ok": _IDS,
        "after_any": _IDS,
    },
)
