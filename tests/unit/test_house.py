"""Rules of the house that ruff and the import contracts cannot check."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from domain.errors import MusterError
from domain.refusals import RefusalCode
from domain.settings import Settings
from muster_client import MusterClientError
from tests.house.measure import MAIN_PATH

ROOT = Path(__file__).parents[2]
HOUSE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
PACKAGES: list[str] = HOUSE["importlinter"]["root_packages"]
BESIDE = {"muster_client": "client/muster_client"}  # packages that are not at the root
LONGEST_LINES = 600
GENERATED = {"client/muster_client/blocking.py", "client/muster_client/shapes.py"}
OUTSIDE = {"build", "_build", "__pycache__", "captures"}
# Assembled here, so that this file does not contain them.
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted", "npm" + "js", "crates" + ".io", "deb." + "debian.org"]
MIRROR_HOSTS = ["debian" + ".org", "ubuntu" + ".com"]


def source_files(*packages: str) -> list[Path]:
    """Return the Python files of some packages, by default all."""
    return sorted(path for package in packages or PACKAGES for path in folder_of(package).rglob("*.py"))


def folder_of(package: str) -> Path:
    return ROOT / BESIDE.get(package, package)


@functools.cache
def every_text() -> Sequence[tuple[Path, str]]:
    """Return every text file of the project."""
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = sorted(one for one in inside if one not in OUTSIDE and (not one.startswith(".") or one == ".ci"))
        for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
            if path.is_file() and path.stat().st_size < 5_000_000:
                found.append((path, path.read_text(encoding="utf-8", errors="replace")))
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [one for one in source_files() if name_of(one) not in GENERATED], ids=name_of)
def test_a_source_file_holds_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_LINES


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_a_module_says_what_it_answers(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

    assert docstring
    assert docstring.splitlines()[0].rstrip()[-1] in ".?!:"


def test_every_package_is_under_the_import_contracts() -> None:
    present = {folder.parent.name for folder in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}

    assert set(PACKAGES) == present | set(BESIDE)
    assert [package for package in BESIDE if not (folder_of(package) / "__init__.py").is_file()] == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    named = [name_of(path) for path, text in every_text() if any(host in text for host in REGISTRY_HOSTS)]

    assert named == []


def test_no_lock_file_names_a_mirror() -> None:
    hosts = re.compile("|".join(map(re.escape, MIRROR_HOSTS)))
    locks = [(path, text) for path, text in every_text() if path.suffix == ".lock"]

    assert [name_of(path) for path, _ in locks]
    assert [name_of(path) for path, text in locks if hosts.search(text) or "://" in text] == []


def keys_in(text: str) -> set[str]:
    """Return the settings a page names: `section.name` of an existing section."""
    sections = "|".join(sorted({key.partition(".")[0] for key in Settings().as_mapping()}))
    return set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", text))


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=name_of)
def test_a_page_names_only_settings_that_exist(page: Path) -> None:
    assert keys_in(page.read_text(encoding="utf-8")) - set(Settings().as_mapping()) == set()


def test_the_operators_manual_gives_the_defaults_that_hold() -> None:
    manual = (ROOT / "docs/operating.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+\.[a-z_.]+)` \| `?([^`|]+?)`? \|", manual, re.MULTILINE)
    defaults = Settings().as_mapping()

    assert len(rows) >= 5
    for key, shown in rows:
        default = defaults[key]
        assert shown == str(default) or float(shown) == default, key


def test_end_to_end_tests_are_where_the_makefile_looks_for_them() -> None:
    mark = "mark." + "e2e"
    marked = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text()]

    assert {path.parts[0] for path in marked} == {"e2e", "acceptance", "browser", "docs", "files"}
    assert "-m e2e tests/e2e tests/acceptance tests/browser tests/docs tests/files\n" in (ROOT / "Makefile").read_text()


# A name and a number: references to private notes.
OUTSIDE_PAPER = re.compile(
    r"(?<![.\w])(?:POLICY|PROTOCOL|DESIGN|PRIORITY|ESTIMATOR|STYLE)(?:\.md|'s|[\s:,]+(?:section|part)|\s+[A-Z]?[0-9])\b"
    r"|proposal,? section [0-9]"
)


def test_no_text_cites_a_paper_outside_the_repository() -> None:
    suffixes = {".py", ".sql", ".md"}
    cited = [name_of(path) for path, text in every_text() if path.suffix in suffixes and OUTSIDE_PAPER.search(text)]

    assert cited == []


@pytest.mark.parametrize(
    ("text", "is_cited"),
    [
        (f"(POLICY{' '}4.5)", True),
        (f"as in PROTOCOL{' '}part 6.2", True),
        (f"DESIGN{chr(10)}    section 5", True),
        ("docs/protocol.md#reports", False),
        ("rule: str = LetRule.DESIGN", False),
    ],
)
def test_a_cited_paper_is_recognised(text: str, is_cited: bool) -> None:
    assert bool(OUTSIDE_PAPER.search(text)) is is_cited


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_a_page_lists_the_main_path_in_reading_order(page: str) -> None:
    section = re.search(r"^## (?:Reading|The main) path\n(.*?)(?=^## |\Z)", (ROOT / page).read_text(), re.M | re.S)
    assert section
    listed = re.findall(r"`([a-z]+/[a-z_]+(?:\.py|/))`", section[1])

    assert [one.rstrip("/") for one in listed] == list(MAIN_PATH)


@pytest.mark.parametrize("code", list(RefusalCode))
def test_every_refusal_code_is_used(code: RefusalCode) -> None:
    pattern = re.compile(rf"\b(?:RefusalCode|Code)\.{code.name}\b")

    assert any(pattern.search(path.read_text(encoding="utf-8")) for path in source_files("scheduler", "feeder"))


def test_every_error_of_the_project_explains_itself() -> None:
    for path in source_files():
        if re.search(r"^class \w+\(\w*Error\)", path.read_text(encoding="utf-8"), re.MULTILINE):
            inside = path.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(inside).removeprefix("client."))

    silent, waiting = [], [MusterError, MusterClientError]
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        if not error.__doc__:
            silent.append(error.__name__)

    assert silent == []


def test_every_package_that_is_installed_is_marked_as_typed() -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]

    assert [package for package in PACKAGES if not (folder_of(package) / "py.typed").is_file()] == []
    assert "py.typed" in packaged["package-data"]["*"]
