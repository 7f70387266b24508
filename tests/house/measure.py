"""Counts files, lines, small modules, wide classes and functions, and the files on the path to a due date. Pure AST.

Tests, benchmarks and the client's distribution are left out.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SMALL_LINES = 110  # a smaller module with a single importer in its own package should be part of it
MOST_PARAMETERS, MOST_ATTRIBUTES = 7, 14
MAIN_PATH = (
    "scheduler/handler.py",
    "wire/decode.py",
    "scheduler/service.py",
    "scheduler/context.py",
    "scheduler/selection.py",
    "scheduler/evaluation.py",
    "scheduler/deadline",
    "scheduler/busy.py",
    "feeder/refill.py",
    "feeder/array.py",
    "store/ledger.py",
    "wire/encode.py",
)  # README and CONTRIBUTING list them in this order


@dataclass(frozen=True)
class Module:
    name: str  # dotted
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def package(self) -> str:
        """Return the folder as a dotted name.

        >>> Module("store.memory.tails", Path("store/memory/settling.py")).package
        'store.memory'
        """
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def imported(self) -> Iterator[str]:
        """Return the dotted names of all imports in the module."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                for alias in node.names:
                    yield f"{node.module}.{alias.name}"


def packages_of(root: Path) -> list[str]:
    """Return the top-level packages, as in the import contract."""
    with (root / "pyproject.toml").open("rb") as file:
        found: list[str] = tomllib.load(file)["tool"]["importlinter"]["root_packages"]
    return found


def modules_of(root: Path, packages: Sequence[str]) -> dict[str, Module]:
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            found[name] = Module(name, path)
    return found


def importers_of(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Return for each module the modules that import it, or a name of it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for name in module.imported():
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module.name:
                found[target].add(module.name)
    return found


def single_importer_modules(modules: Mapping[str, Module]) -> list[str]:
    """Return small modules whose only importer is in their own package, without ports and entry points."""
    importers = importers_of(modules)
    return sorted(
        name
        for name, module in modules.items()
        if module.lines < SMALL_LINES
        and module.path.name not in ("__init__.py", "__main__.py", "ports.py")
        and len(importers[name]) == 1
        and modules[next(iter(importers[name]))].package == module.package
    )


def attributes_of(node: ast.ClassDef) -> int:
    """Return the attributes that a class declares, or sets on self.

    >>> attributes_of(ast.parse("class A:\\n    x: int\\n    def __init__(self):\\n        self.y = 1").body[0])
    2
    """
    names = {
        line.target.id for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }
    for inner in ast.walk(node):
        targets = (
            inner.targets
            if isinstance(inner, ast.Assign)
            else [inner.target]
            if isinstance(inner, ast.AnnAssign)
            else []
        )
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                names.add(target.attr)
    return len(names)


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the parameters without self and cls.

    >>> parameters_of(ast.parse("def f(self, a, *, b=1): ...").body[0])
    2
    """
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([one for one in every if one.arg not in ("self", "cls")])


def on_main_path(root: Path, modules: Mapping[str, Module]) -> list[Module]:
    """Return the modules of the main path that exist."""
    paths = [root / one for one in MAIN_PATH]
    return [
        module for module in modules.values() if any(module.path == one or one in module.path.parents for one in paths)
    ]


def duplicate_classes(modules: Mapping[str, Module]) -> list[str]:
    """Return public class names that occur more than once."""
    counted = Counter(
        node.name
        for module in modules.values()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in counted.items() if count > 1)


def measured(root: Path) -> dict[str, object]:
    """Return the figures of a checkout, as JSON."""
    packages = [one for one in packages_of(root) if (root / one).is_dir()]  # the client is below client/
    modules = modules_of(root, packages)
    files = Counter(name.partition(".")[0] for name in modules)
    lines: Counter[str] = Counter()
    for name, module in modules.items():
        lines[name.partition(".")[0]] += module.lines
    classes = [
        (attributes_of(node), f"{name}.{node.name}")
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    functions = [
        (parameters_of(node), f"{name}.{node.name}")
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    path = on_main_path(root, modules)
    wide = [
        f"{module.name}.{node.name}"
        for module in path
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.ClassDef) and attributes_of(node) > MOST_ATTRIBUTES)
        or (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and parameters_of(node) > MOST_PARAMETERS)
    ]
    sql = [
        one
        for one in root.rglob("*.sql")
        if not {"tests", "benchmarks", ".venv", "build"} & set(one.relative_to(root).parts)
    ]
    return {
        "python_files": sum(files.values()),
        "python_lines": sum(lines.values()),
        "files_by_package": dict(sorted(files.items())),
        "lines_by_package": dict(sorted(lines.items())),
        "sql_files": len(sql),
        "small_single_importer_modules": len(single_importer_modules(modules)),
        "largest_class": max(classes),
        "functions_over_six_parameters": sum(count > 6 for count, _ in functions),
        "top_level_packages": len(packages),
        "duplicate_public_classes": len(duplicate_classes(modules)),
        "main_path_files": len({one for one in MAIN_PATH if (root / one).exists()}),
        "main_path_missing": [one for one in MAIN_PATH if not (root / one).exists()],
        "wide_on_main_path": wide,
    }
