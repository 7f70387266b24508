"""The examples in the docstrings of the decisions hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from scheduler import busy, choice, deadline, feasibility, gates, need, plan_classes, runtime, slots, versions


@pytest.mark.parametrize(
    "module", [busy, choice, deadline, feasibility, gates, need, plan_classes, runtime, slots, versions]
)
def test_examples_hold(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
