"""The generated page and drawing match the table."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

from domain.jobs import InstanceState
from lifecycle.states import TRANSITIONS
from tests.docs.life_cycle_page import BOX_HEIGHT, BOX_WIDTH, HEIGHT, PLACES, WIDTH, arrows, drawing, page

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.docs.life_cycle_page > docs/lifecycle.md"


def test_the_page_has_every_step() -> None:
    drawn = page()
    for (source, event), (target, _) in TRANSITIONS.items():
        assert f"| {source} | {event} | {target} |" in drawn


FILE = Path(__file__).parents[2] / "docs" / "charts" / "lifecycle.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_drawing_is_not_stale() -> None:
    assert FILE.read_text(encoding="utf-8") == drawing(), (
        "run: python -m tests.docs.life_cycle_page svg > docs/charts/lifecycle.svg"
    )


def test_every_state_and_every_event_is_written() -> None:
    drawn = ET.fromstring(drawing())
    written = [text for element in drawn.iter(f"{SVG}text") if (text := element.text)]

    assert sorted(written) == sorted([*InstanceState, *(event for _, event in TRANSITIONS)])


def test_every_step_belongs_to_one_arrow() -> None:
    steps = {(arrow.source, event): arrow.target for arrow in arrows() for event in arrow.events}

    assert steps == {step: target for step, (target, _) in TRANSITIONS.items()}


def test_boxes_stand_apart_within_the_drawing() -> None:
    for x, y in PLACES.values():
        assert BOX_WIDTH / 2 < x < WIDTH - BOX_WIDTH / 2
        assert BOX_HEIGHT / 2 < y < HEIGHT - BOX_HEIGHT / 2
    for (x, y), (other_x, other_y) in combinations(PLACES.values(), 2):
        assert abs(x - other_x) > BOX_WIDTH or abs(y - other_y) > BOX_HEIGHT
