"""The pages of the reference that are made from the code are as the code is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.manual.pages import PAGES
from cli.manual.schema import schema_page
from domain.settings import Settings
from store.migrate import schema

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_made_page_is_as_the_code_is(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "make reference"


def test_every_setting_has_a_row_with_its_default() -> None:
    text = (FOLDER / "settings.md").read_text(encoding="utf-8")

    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", text, flags=re.MULTILINE))

    assert list(rows) == list(Settings().as_mapping())
    assert rows["deadline.min_slack_s"].startswith("seconds | `3600` | 0 to 315360000 | ")


def test_every_table_has_its_columns() -> None:
    text = schema_page(schema())

    tables = re.findall(r"^CREATE TABLE (\w+)", schema(), flags=re.MULTILINE)
    assert re.findall(r"^### (\w+)$", text, flags=re.MULTILINE) == tables
    assert "| `due_at` | `double precision` |" in text
