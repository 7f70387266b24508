"""Compares the outputs of two instances. Pure.

A comparer reads an instance's outputs once, so that a malformed file is found before any comparison. Two instances
agree if their readings have the same structure and their numbers agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, assert_never

from domain.jobs import ValidatorKind
from domain.quick import quick_dataclass
from domain.units import InstanceId
from lifecycle.leaves import DEFAULT_LIMITS, MalformedOutputError, Reader, Reading, ReadingLimits
from lifecycle.settle import UNREADABLE

ABSOLUTE_FLOOR = 1e-12  # smaller differences are always ignored


@quick_dataclass(frozen=True, slots=True)
class OutputCopy:
    """One output of one instance. `name` is its name in the job. If `content` is None, the output was not read."""

    name: str
    nbytes: int
    md5: str
    content: bytes | None = None


class Comparer(Protocol):
    """A method of comparing outputs."""

    @property
    def needs_content(self) -> bool:
        """Return whether the contents of outputs are needed in addition to names, sizes and MD5s."""
        ...

    def read(self, outputs: Sequence[OutputCopy]) -> Reading:
        """Return an instance's outputs in comparable form. Raises MalformedOutputError."""
        ...

    def agree(self, one: float, other: float) -> bool:
        """Return whether two numbers at the same position are equal enough."""
        ...


@dataclass(frozen=True, slots=True)
class Bitwise:
    """Accepts outputs that are byte for byte equal, by MD5 and size."""

    needs_content: bool = False

    def read(self, outputs: Sequence[OutputCopy]) -> Reading:
        ordered = sorted((output.name, output.md5.lower(), output.nbytes) for output in outputs)
        return Reading(repr(ordered).encode())

    def agree(self, one: float, other: float) -> bool:
        return one == other


@dataclass(frozen=True, slots=True)
class AcceptAll:
    """Accepts all results without comparing them."""

    needs_content: bool = False

    def read(self, outputs: Sequence[OutputCopy]) -> Reading:  # noqa: ARG002
        return Reading()

    def agree(self, one: float, other: float) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class NumericTolerance:
    """Accepts JSON or CSV outputs with equal texts and with numbers that differ within a tolerance.

    Numbers a and b agree if |a - b| <= max(relative * max(|a|, |b|), floor). NaN agrees with nothing, not even NaN.

    >>> NumericTolerance(1e-3).agree(1000.0, 1000.9), NumericTolerance(1e-3).agree(1000.0, 1001.1)
    (True, False)
    """

    relative: float
    floor: float = ABSOLUTE_FLOOR
    limits: ReadingLimits = DEFAULT_LIMITS
    needs_content: bool = True

    def read(self, outputs: Sequence[OutputCopy]) -> Reading:
        reader = Reader(self.limits)
        for output in sorted(outputs, key=lambda output: output.name):
            if output.content is None:
                raise MalformedOutputError(f"{output.name} is not on the server")
            reader.add(output.name, output.content)
        return reader.reading()

    def agree(self, one: float, other: float) -> bool:
        return math.isclose(one, other, rel_tol=self.relative, abs_tol=self.floor)


@lru_cache(maxsize=100)
def comparer_for(validator: ValidatorKind, tolerance: float = 0.0, limits: ReadingLimits = DEFAULT_LIMITS) -> Comparer:
    """Return the comparer for a job class."""
    match validator:
        case ValidatorKind.BITWISE:
            return Bitwise()
        case ValidatorKind.ACCEPT:
            return AcceptAll()
        case ValidatorKind.TOLERANCE:
            return NumericTolerance(tolerance, limits=limits)
        case _:
            assert_never(validator)


def group_readings(
    comparer: Comparer, readings: Mapping[InstanceId, Reading | None], *, around: InstanceId | None = None
) -> dict[InstanceId, int]:
    """Return a group number for each instance, counted from 0. An instance whose reading is None is UNREADABLE.

    Agreement is not transitive, so a group consists of the instances that agree with its first member. Instances are
    taken in order of id and join the first group that they agree with. `around` (the canonical instance, if any) comes
    first, so that late results are compared with it and not with each other.

    >>> copies = {InstanceId(n): [OutputCopy("out", 1, md5)] for n, md5 in ((1, "a"), (2, "b"), (3, "a"))}
    >>> group_readings(Bitwise(), {number: Bitwise().read(copy) for number, copy in copies.items()})
    {1: 0, 2: 1, 3: 0}
    """
    groups: dict[InstanceId, int] = {}
    firsts: list[Reading] = []
    for instance_id in sorted(readings, key=lambda instance_id: (instance_id != around, instance_id)):
        reading = readings[instance_id]
        if reading is None:
            groups[instance_id] = UNREADABLE  # will be rejected when the job is settled
            continue
        group = next((n for n, first in enumerate(firsts) if _agree(comparer, first, reading)), len(firsts))
        if group == len(firsts):
            firsts.append(reading)
        groups[instance_id] = group
    return groups


def _agree(comparer: Comparer, one: Reading, other: Reading) -> bool:
    return one.structure == other.structure and all(map(comparer.agree, one.numbers, other.numbers))
