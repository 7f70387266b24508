"""The pictures of the manuals: each exists, each is shown, and the browser tests take all of them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.browser.conftest import PICTURES

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "pictures"
MOST_BYTES = 250_000
SHOWN = re.compile(r"!\[[^\]]{20,}\]\((?:\.\./)?pictures/([a-z-]+\.png)\)")  # with a text for those who cannot see it


def test_every_picture_is_taken_and_shown() -> None:
    taken = {f"{name.removesuffix('-light')}.png" for name in PICTURES}
    shown = {name for page in DOCS.rglob("*.md") for name in SHOWN.findall(page.read_text(encoding="utf-8"))}

    assert {path.name for path in FOLDER.iterdir()} == taken == shown


def test_pictures_are_small() -> None:
    assert [path.name for path in FOLDER.iterdir() if path.stat().st_size > MOST_BYTES] == []
