"""Input and result of comparing a job's outputs, and the comparison within this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.errors import MusterError
from domain.jobs import ValidatorKind
from domain.units import InstanceId
from lifecycle.compare import OutputCopy, comparer_for, group_readings
from lifecycle.leaves import DEFAULT_LIMITS, MalformedOutputError, Reading, ReadingLimits

Notify = Callable[[str, InstanceId], None]  # called at the start of "read" or "parse" of an instance, or "compare"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """An output of an instance: its name in the job, its file name, and its recorded size and MD5."""

    name: str
    file_name: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outputs to compare, by instance. `around` is the canonical instance, if there is one."""

    validator: ValidatorKind
    tolerance: float
    outputs: Mapping[InstanceId, tuple[OutputFile, ...]]
    around: InstanceId | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """The group number of each instance (lifecycle/compare.py), and a reason for each UNREADABLE instance."""

    groups: Mapping[InstanceId, int]
    because: Mapping[InstanceId, str] = field(default_factory=dict)


class TooSlowError(MusterError):
    """The outputs are readable, but comparing them would exceed the time or memory limit."""


class Comparisons(Protocol):
    """Compares outputs of which the contents must be read."""

    @property
    def at_once(self) -> int:
        """Return the maximum number of concurrent comparisons."""
        ...

    async def compare(self, comparison: Comparison) -> Compared:
        """Read the outputs and compare them.

        Raises TooSlowError, or OSError or UnavailableError if files cannot be read now (no output is blamed).
        """
        ...


def compare_here(
    comparison: Comparison,
    contents: Callable[[OutputFile], bytes | None],
    limits: ReadingLimits = DEFAULT_LIMITS,
    notify: Notify = lambda *_: None,
) -> Compared:
    """Read the instances one by one, so that an error is attributed to a single instance, and then compare them.

    `contents` returns an output's bytes, or None if it is not on the server.
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
