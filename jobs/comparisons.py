"""Compares the outputs of a job's instances: the values that go in and come out, and the steps in this process."""

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
    """One output of one instance: the job's name for it, the name of its file, its size and MD5 as recorded."""

    name: str
    file_name: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outputs to compare, by instance. `around`: the canonical instance, when there is one."""

    validator: ValidatorKind
    tolerance: float
    outputs: Mapping[InstanceId, tuple[OutputFile, ...]]
    around: InstanceId | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A group per instance (lifecycle/compare.py), and why those cannot be read that are UNREADABLE."""

    groups: Mapping[InstanceId, int]
    because: Mapping[InstanceId, str] = field(default_factory=dict)


class TooSlowError(MusterError):
    """Outputs that can be read take too long, or too much memory, to compare with one another."""


class Comparisons(Protocol):
    """Compares outputs whose contents must be read."""

    @property
    def at_once(self) -> int:
        """How many comparisons may run at the same time."""
        ...

    async def compare(self, comparison: Comparison) -> Compared:
        """Read and compare.

        Raises TooSlowError; OSError or UnavailableError when files cannot be read now: no output is to blame.
        """
        ...


def compare_here(
    comparison: Comparison,
    contents: Callable[[OutputFile], bytes | None],
    limits: ReadingLimits = DEFAULT_LIMITS,
    notify: Notify = lambda *_: None,
) -> Compared:
    """Read instance by instance, so that what goes wrong is known to be of one of them; then compare.

    `contents` gives the bytes of an output, None where it is not on the server.
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
