"""Quick dataclasses behave like frozen ones."""

from __future__ import annotations

import dataclasses
import doctest
from dataclasses import dataclass, replace

import domain.quick
from domain.quick import quick_dataclass


@quick_dataclass(frozen=True, slots=True)
class Quick:
    line: int
    column: int = 0


@dataclass(frozen=True, slots=True)
class Usual:
    line: int
    column: int = 0


def test_equal_values_are_equal_and_hash_alike() -> None:
    assert Quick(3) == Quick(3, 0)
    assert Quick(3) != Quick(4)
    assert len({Quick(3), Quick(3), Quick(4)}) == 2


def test_slots_fields_and_hash_match_frozen_dataclasses() -> None:
    assert Quick.__slots__ == Usual.__slots__
    assert [field.name for field in dataclasses.fields(Quick)] == [field.name for field in dataclasses.fields(Usual)]
    assert hash(Quick(3, 4)) == hash(Usual(3, 4))
    assert repr(Quick(3)) == repr(Usual(3)).replace("Usual", "Quick")


def test_a_changed_value_is_another_one() -> None:
    first = Quick(3, 4)
    assert (replace(first, line=5), first) == (Quick(5, 4), Quick(3, 4))


def test_its_example_holds() -> None:
    result = doctest.testmod(domain.quick)
    assert (result.attempted, result.failed) == (2, 0)
