"""The examples in the docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from lifecycle import compare, leaves, outcome, settle, states, tail, turnaround


@pytest.mark.parametrize("module", [compare, leaves, outcome, settle, states, tail, turnaround])
def test_examples_hold(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
