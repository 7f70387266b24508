"""Tests the figures of `python -m tests.house`."""

from __future__ import annotations

import ast
import doctest
from pathlib import Path

import pytest

from tests.house import measure

PROJECT = '[tool.importlinter]\nroot_packages = ["a", "b"]\n'


@pytest.fixture
def house(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": PROJECT,
        "a/__init__.py": "",
        "a/main.py": "from a.small import one\nfrom b.shared import two\n\n\nclass Work:\n    x: int\n",
        "a/small.py": "one = 1\n",
        "a/ports.py": "three = 3\n",
        "b/__init__.py": "",
        "b/shared.py": "two = 2\n\n\nclass Work:\n    def __init__(self) -> None:\n        self.y = self.z = 1\n",
        "b/query.sql": "SELECT 1;\n",
        "tests/sample.sql": "SELECT 1;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_small_module_with_one_importer_beside_it_is_counted(house: Path) -> None:
    modules = measure.modules_of(house, measure.packages_of(house))
    assert measure.single_importer_modules(modules) == ["a.small"]


def test_figures_leave_out_tests(house: Path) -> None:
    found = measure.measured(house)
    assert (found["python_files"], found["sql_files"], found["duplicate_public_classes"]) == (5 + 1, 1, 1)
    assert found["largest_class"] == (2, "b.shared.Work")


def test_parameters_leave_out_self() -> None:
    [function] = ast.parse("def f(self, a, *, b=1): ...").body
    assert isinstance(function, ast.FunctionDef)
    assert measure.parameters_of(function) == 2


def test_examples_hold() -> None:
    assert doctest.testmod(measure).failed == 0
