"""How is a value made that a node makes thousands of in a second? Pure.

A frozen dataclass sets each field through `object.__setattr__`: 110 ns a field, against 35. Deciding a request sets
hundreds of fields, and was a sixth dearer for it, each further job of a request a fifth.
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
        """`dataclass(frozen=True, slots=True)` for the type checker, which finds every assignment to a field.

        At run time nothing stands in the way of one; equality, hash and `dataclasses.replace` are a frozen value's.

        >>> @quick_dataclass(frozen=True, slots=True)
        ... class Place:
        ...     line: int
        ...     column: int = 0
        >>> {Place(3): "here"}[dataclasses.replace(Place(4), line=3)]
        'here'
        """
        return dataclasses.dataclass(slots=slots, unsafe_hash=frozen)
