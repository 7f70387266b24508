"""The pages for users of other systems: their commands exist, and print what the pages show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from administration.ordering.priorities import with_ordering
from cli.main import muster
from cli.priority import changes_given
from domain.ordering_settings import COMPONENTS, SUBCOMPONENTS, OrderingSettings
from domain.settings import Settings
from priority.equal_access import equal_access
from priority.policies import multifactor

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("coming-from-*.md"))
MULTIFACTOR = multifactor(OrderingSettings())
COMMAND = re.compile(r"^\$ (muster .*)$", re.MULTILINE)


def commands_of(page: Path) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in COMMAND.findall(page.read_text(encoding="utf-8"))]


def parsed(arguments: list[str]) -> click.Context:
    """Parse the command in the arguments with its parameters, without running it."""
    command: click.Command = muster
    parent: click.Context | None = None
    rest = list(arguments)
    while isinstance(command, click.Group):
        parent = click.Context(command, parent=parent)
        name = rest.pop(0)
        found = command.get_command(parent, name)
        assert found is not None, name
        command = found
    return command.make_context(arguments[0], rest, parent=parent)


def test_there_is_a_page_per_system() -> None:
    assert [page.stem for page in PAGES] == [f"coming-from-{name}" for name in ("flux", "maui", "moab", "nci")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    assert commands_of(page)
    for arguments in commands_of(page):
        context = parsed(arguments)
        if arguments[:2] in (["priority", "set"], ["priority", "preview"]):
            with_ordering(Settings(), changes_given(context.params["values"]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_dry_run_prints_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"```console\n\$ (muster fairshare emulate [^\n]*)\n(.*?)```", text, flags=re.DOTALL)

    assert shown
    for line, printed in shown:
        done = CliRunner().invoke(muster, shlex.split(line)[1:])
        assert done.output == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_setting_a_page_names_is_one(page: Path) -> None:
    named = set(re.findall(r"`(ordering\.[a-z_]+)`", page.read_text(encoding="utf-8")))

    assert named
    assert named <= set(Settings().as_mapping())


NAMES = {
    "coming-from-moab": {*COMPONENTS, *SUBCOMPONENTS},
    "coming-from-maui": set(SUBCOMPONENTS),
    "coming-from-flux": {term.name for term in (*MULTIFACTOR.own, *MULTIFACTOR.shared)},
    "coming-from-nci": {term.name for term in (*equal_access().own, *equal_access().shared)},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_table_of_each_page_names_every_term_of_its_policy(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    named = {word for row in rows for word in re.findall(r"\w+", row)}

    assert NAMES[page.stem] - named == set()
    for row in rows:  # and none that is not one
        for weight in re.findall(r"^\| \w+: ([A-Z, ]+) \|", row):
            unknown = set(weight.split(", ")) - {*SUBCOMPONENTS}
            assert not unknown or row.split("|")[2].strip() == "nothing", unknown
