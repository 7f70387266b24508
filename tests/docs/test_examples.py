"""Docstrings and pages have correct examples, valid links and existing commands."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE_PATTERNS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]["packages"]["find"]["include"]
FOLDERS = {
    folder.name: folder
    for folder in sorted([*ROOT.iterdir(), *(ROOT / "client").iterdir()])
    if (folder / "__init__.py").is_file() and any(fnmatch(folder.name, pattern) for pattern in PACKAGE_PATTERNS)
}
PACKAGES = sorted(FOLDERS)
PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "client/README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
)
NAMED_PAGE = re.compile(r"(docs/[\w/-]+\.md)(?:#([\w-]+))?")


def modules_of(package: str) -> list[str]:
    """Return the names of a package's modules without importing them; __main__ would run."""
    folder = FOLDERS[package]
    files = sorted(path for path in folder.rglob("*.py") if path.stem not in ("__main__",))
    names = (".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in files)
    return [name.removesuffix(".__init__") for name in names]


MODULES = [name for package in PACKAGES for name in modules_of(package)]


def test_the_packages_are_those_of_the_house() -> None:
    assert {"domain", "wire", "priority", "lifecycle", "store", "feeder", "scheduler", "jobs", "transfer"} <= set(
        PACKAGES
    )
    assert {"administration", "web", "api", "console", "portal", "runtime", "cli", "muster_client"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_python_finds_every_module_of_a_package(package: str) -> None:
    """A folder without __init__.py would be left out of an installation."""
    found = {module.name for module in pkgutil.walk_packages([str(FOLDERS[package])], f"{package}.")}

    assert {name for name in modules_of(package) if not name.endswith("__main__")} - {package} == found - {
        name for name in found if name.endswith("__main__")
    }


@pytest.mark.parametrize("name", MODULES)
def test_a_modules_examples_hold(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))

    assert result.failed == 0


def prose_of(page: Path) -> str:
    """Return the page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def code_of(page: Path) -> str:
    """Return the page's code, blocks and inline."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, flags=re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", prose_of(page))])


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors_of(there), f"{page.name}: {target}"


def test_code_names_only_sections_that_exist() -> None:
    """Comments and docstrings refer to pages as docs/protocol.md#reports."""
    sources = [path for folder in FOLDERS.values() for end in ("py", "sql") for path in folder.rglob(f"*.{end}")]
    named = {one for path in sources for one in NAMED_PAGE.findall(path.read_text(encoding="utf-8"))}

    assert len(named) >= 10
    for name, anchor in named:
        assert (ROOT / name).is_file(), name
        assert not anchor or anchor in anchors_of(ROOT / name), f"{name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_make_targets_that_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9_-]*):", makefile, flags=re.MULTILINE))

    named = set(re.findall(r"^\s*make ([a-z][a-z0-9_-]*)", code_of(page), flags=re.MULTILINE))

    assert named <= targets


def test_the_readme_begins_with_the_two_commands() -> None:
    assert re.findall(r"^make ([a-z]+)", code_of(ROOT / "README.md"), flags=re.MULTILINE)[:2] == ["demo", "test"]


def test_the_readme_names_only_source_files_that_exist() -> None:
    packages = "|".join(PACKAGES)
    named = re.findall(rf"`((?:{packages})/[\w/.]+\.(?:py|sql|md))`", (ROOT / "README.md").read_text(encoding="utf-8"))

    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []
