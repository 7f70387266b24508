"""The generated pages of the reference are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.manual.pages import PAGES, schema_page
from domain.settings import Settings

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
TABLE = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.M | re.S)
SECTION = re.compile(r"^### (\w+)$(.*?)(?=^##|\Z)", re.M | re.S)


@pytest.mark.parametrize("name", PAGES)
def test_a_made_page_is_as_the_code_is(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "make reference"


def test_every_setting_has_a_row_with_its_default() -> None:
    text = (FOLDER / "settings.md").read_text(encoding="utf-8")

    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", text, flags=re.MULTILINE))

    assert list(rows) == list(Settings().as_mapping())
    assert rows["deadline.min_slack_s"].startswith("seconds | `3600` | 0 to 315360000 | ")


def test_tables_of_the_page_equal_the_database() -> None:
    """Another test compares schema.sql with a database."""
    sql = (FOLDER / "schema.sql").read_text(encoding="utf-8")
    page = (FOLDER / "schema.md").read_text(encoding="utf-8")

    made = {name: set(re.findall(r'^    "?([a-z_0-9]+)"? ', body, re.M)) for name, body in TABLE.findall(sql)}
    told = {name: set(re.findall(r"^\| `([a-z_0-9]+)` ", body, re.M)) for name, body in SECTION.findall(page)}
    assert told == made
    assert "| `due_at` | `double precision` |" in page


def test_page_follows_added_and_dropped_columns() -> None:
    sql = "CREATE TABLE t (\n    a int\n);\nALTER TABLE t ADD COLUMN b text NOT NULL;  -- of a\nALTER TABLE t\n"
    sql += "    ADD COLUMN c int,\n    ADD COLUMN d int;\nALTER TABLE t DROP COLUMN c;\n"

    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", schema_page(sql), flags=re.MULTILINE)

    assert rows[1:] == [
        ("`a`", "`int`", ""),
        ("`b`", "`text NOT NULL`", "of a"),
        ("`d`", "`int`", ""),
    ]
