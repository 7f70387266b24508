"""Frozen values that are cheap to create, for those made thousands of times per second. Pure.

A frozen dataclass sets each field through `object.__setattr__`: 110 ns a field instead of 35. A request sets hundreds
of fields: with frozen classes its decision took a sixth longer, each further job a fifth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["quick_dataclass"]

Value = TypeVar("Value")

if TYPE_CHECKING:
    from dataclasses import dataclass as quick_dataclass
else:

    def quick_dataclass(*, frozen: bool, slots: bool) -> Callable[[type[Value]], type[Value]]:
        """Act as `dataclass(frozen=True, slots=True)` for the type checker, which finds every assignment to a field.

        At run time assignment is not prevented; equality, hash and `dataclasses.replace` work as for a frozen value.

        >>> @quick_dataclass(frozen=True, slots=True)
        ... class Place:
        ...     line: int
        ...     column: int = 0
        >>> {Place(3): "here"}[dataclasses.replace(Place(4), line=3)]
        'here'
        """
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)
