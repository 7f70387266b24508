"""Compares the outputs of a job's instances: the values passed in and returned, and the steps run in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.errors import MusterError
from domain.jobs import ValidatorKind
from domain.units import InstanceId
from lifecycle.compare import OutputCopy, comparer_for, group_readings
from lifecycle.leaves import DEFAULT_LIMITS, MalformedOutputError, Reading, ReadingLimits

Notify = Callable[[str, InstanceId], None]  # the step that begins: "read" or "parse" of an instance, or "compare"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One output of one instance: the job's name for it, its file name, and its recorded size and MD5."""

    name: str
    file_name: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outputs to compare, by instance. `around` is the canonical instance, if there is one."""

    validator: ValidatorKind
    tolerance: float
    outputs: Mapping[InstanceId, tuple[OutputFile, ...]]
    around: InstanceId | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A group per instance (lifecycle/compare.py), and a reason for each UNREADABLE one."""

    groups: Mapping[InstanceId, int]
    because: Mapping[InstanceId, str] = field(default_factory=dict)


class TooSlowError(MusterError):
    """The outputs are readable, but comparing them exceeds the time or memory limit."""


class Comparisons(Protocol):
    """Compares outputs whose contents must be read."""

    @property
    def at_once(self) -> int:
        """Maximum number of concurrent comparisons."""
        ...

    async def compare(self, comparison: Comparison) -> Compared:
        """Read and compare.

        Raises TooSlowError; OSError or UnavailableError if files cannot be read now (no output is blamed).
        """
        ...


def compare_here(
    comparison: Comparison,
    contents: Callable[[OutputFile], bytes | None],
    limits: ReadingLimits = DEFAULT_LIMITS,
    notify: Notify = lambda *_: None,
) -> Compared:
    """Read the instances one at a time, so that an error belongs to one of them; then compare.

    `contents` returns the bytes of an output, or None if it is not on the server.
    """
    comparer = comparer_for(comparison.validator, comparison.tolerance, limits)
    readings: dict[InstanceId, Reading | None] = {}
    because: dict[InstanceId, str] = {}
    for instance_id, files in comparison.outputs.items():
        try:
            limits.check_bytes(sum(file.nbytes for file in files))
            notify("read", instance_id)
            copies = [OutputCopy(file.name, file.nbytes, file.md5, contents(file)) for file in files]
            notify("parse", instance_id)
            readings[instance_id] = comparer.read(copies)
        except MalformedOutputError as error:
            readings[instance_id] = None
            because[instance_id] = str(error)
    for instance_id in list(readings)[:1]:
        notify("compare", instance_id)
    return Compared(group_readings(comparer, readings, around=comparison.around), because)
