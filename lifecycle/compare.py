"""Do the outputs of two instances agree? Pure.

A comparer reads an instance's outputs into values at places, once, so that a malformed file is found
before anything is compared; two instances agree when they have the same places and their values agree.
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
from lifecycle.leaves import Leaf, MalformedOutputError, Value, read_leaves
from lifecycle.settle import UNREADABLE

ABSOLUTE_FLOOR = 1e-12  # differences up to here never matter


@quick_dataclass(frozen=True, slots=True)
class OutputCopy:
    """One output of one instance. `name` is the job's name for it; `content` None: not read."""

    name: str
    nbytes: int
    md5: str
    content: bytes | None = None


class Comparer(Protocol):
    """One way of comparing."""

    @property
    def needs_content(self) -> bool:
        """Whether outputs must be read, because names, sizes and MD5s do not tell enough."""
        ...

    def read(self, outputs: Sequence[OutputCopy]) -> tuple[Leaf, ...]:
        """What there is to compare of an instance's outputs. Raises MalformedOutputError."""
        ...

    def agree(self, one: Value, other: Value) -> bool:
        """Whether two values at the same place agree."""
        ...


@dataclass(frozen=True, slots=True)
class Bitwise:
    """The same outputs, byte for byte, told by MD5 and size."""

    needs_content: bool = False

    def read(self, outputs: Sequence[OutputCopy]) -> tuple[Leaf, ...]:
        ordered = sorted(outputs, key=lambda output: output.name)
        return tuple(((output.name,), f"{output.md5.lower()} {output.nbytes}") for output in ordered)

    def agree(self, one: Value, other: Value) -> bool:
        return one == other


@dataclass(frozen=True, slots=True)
class AcceptAll:
    """Whatever came back is right."""

    needs_content: bool = False

    def read(self, outputs: Sequence[OutputCopy]) -> tuple[Leaf, ...]:  # noqa: ARG002 - whatever they are
        return ()

    def agree(self, one: Value, other: Value) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class NumericTolerance:
    """JSON or CSV whose numbers are close and whose texts are equal.

    Numbers a and b are close when |a - b| <= max(relative * max(|a|, |b|), floor). NaN is close to
    nothing, not even to NaN.

    >>> NumericTolerance(1e-3).agree(1000.0, 1000.9), NumericTolerance(1e-3).agree(1000.0, 1001.1)
    (True, False)
    """

    relative: float
    floor: float = ABSOLUTE_FLOOR
    needs_content: bool = True

    def read(self, outputs: Sequence[OutputCopy]) -> tuple[Leaf, ...]:
        leaves: list[Leaf] = []
        for output in sorted(outputs, key=lambda output: output.name):
            if output.content is None:
                raise MalformedOutputError(f"{output.name} is not on the server")
            found = read_leaves(output.name, output.content)
            leaves.extend(((output.name, *place), value) for place, value in found)
        return tuple(leaves)

    def agree(self, one: Value, other: Value) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=self.relative, abs_tol=self.floor)
        return type(one) is type(other) and one == other


@lru_cache(maxsize=100)
def comparer_for(validator: ValidatorKind, tolerance: float = 0.0) -> Comparer:
    """The comparer a job class asks for."""
    match validator:
        case ValidatorKind.BITWISE:
            return Bitwise()
        case ValidatorKind.ACCEPT:
            return AcceptAll()
        case ValidatorKind.TOLERANCE:
            return NumericTolerance(tolerance)
        case _:
            assert_never(validator)


def group_outputs(
    comparer: Comparer, outputs: Mapping[InstanceId, Sequence[OutputCopy]], *, around: InstanceId | None = None
) -> dict[InstanceId, int]:
    """A group per instance, numbered from 0 in the order found; UNREADABLE for outputs that cannot be read.

    Closeness is not transitive, so a group is what agrees with its first member. Instances are taken by
    id, each into the first group it agrees with; `around` (the canonical one, when there is one) is taken
    first, so that latecomers are compared with it and not with one another.

    >>> copies = {InstanceId(n): [OutputCopy("out", 1, md5)] for n, md5 in ((1, "a"), (2, "b"), (3, "a"))}
    >>> group_outputs(Bitwise(), copies)
    {1: 0, 2: 1, 3: 0}
    """
    groups: dict[InstanceId, int] = {}
    firsts: list[tuple[Leaf, ...]] = []
    for instance_id in sorted(outputs, key=lambda instance_id: (instance_id != around, instance_id)):
        try:
            reading = comparer.read(outputs[instance_id])
        except MalformedOutputError:
            groups[instance_id] = UNREADABLE  # that is the answer: settling rejects it
            continue
        group = next((n for n, first in enumerate(firsts) if _agree(comparer, first, reading)), len(firsts))
        if group == len(firsts):
            firsts.append(reading)
        groups[instance_id] = group
    return groups


def _agree(comparer: Comparer, one: tuple[Leaf, ...], other: tuple[Leaf, ...]) -> bool:
    return len(one) == len(other) and all(
        place == other_place and comparer.agree(value, other_value)
        for (place, value), (other_place, other_value) in zip(one, other, strict=True)
    )
