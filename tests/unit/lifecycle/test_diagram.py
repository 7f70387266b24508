"""The drawn page is the table's."""

from __future__ import annotations

from pathlib import Path

from lifecycle.diagram import page
from lifecycle.states import TRANSITIONS

PAGE = Path(__file__).parents[3] / "docs" / "lifecycle.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m lifecycle.diagram > docs/lifecycle.md"


def test_the_page_has_every_step() -> None:
    drawn = page()
    for (source, event), (target, _) in TRANSITIONS.items():
        assert f"| {source} | {event} | {target} |" in drawn
