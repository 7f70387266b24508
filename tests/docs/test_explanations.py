"""The worked examples of the explanations hold, and the commands of the how-to guides exist."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from domain.settings import Settings
from tests.docs.test_coming_from import commands_of, parsed

DOCS = Path(__file__).parents[2] / "docs"
WORKED = DOCS / "reference" / "worked-examples.md"
HELP = ("ordering", "percentiles", "deadlines", "completion")
GUIDES = sorted((DOCS / "how-to").glob("*.md"))


def examples_of(page: Path) -> str:
    return "\n".join(re.findall(r"^```pycon\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S))


def test_pages_for_operators_have_no_code() -> None:
    assert not [page for page in HELP if ">>>" in (DOCS / "explanations" / f"{page}.md").read_text(encoding="utf-8")]


def test_the_worked_examples_hold() -> None:
    names: dict[str, Any] = {}
    examples = doctest.DocTestParser().get_doctest(examples_of(WORKED), names, WORKED.stem, str(WORKED), 0)
    said: list[str] = []

    result = doctest.DocTestRunner().run(examples, out=said.append)

    assert result.attempted >= 40
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_command_and_setting_of_a_guide_exists(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "collatz.sh").touch()  # added by a guide
    text = page.read_text(encoding="utf-8")
    shown = [shlex.split(line)[1:] for line in re.findall(r"^ +\$ (muster .*)$", text, flags=re.MULTILINE)]

    for arguments in [*commands_of(page), *shown]:
        assert parsed(arguments) is not None
    sections = {key.partition(".")[0] for key in Settings().as_mapping()}
    named = {key for key in re.findall(r"`([a-z]+\.[a-z_]+)`", text) if key.partition(".")[0] in sections}
    assert named <= set(Settings().as_mapping())
