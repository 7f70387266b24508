"""Where forms lead to."""

from __future__ import annotations

import pytest

from operations.console.assets import Assets, sources
from operations.console.rendering import Look, Renderer
from operations.site.desk import LOOK
from tests.unit.operations.clocks import StillClock


def a_renderer(root: str, look: Look | None = None) -> Renderer:
    return Renderer(Assets(sources()), root, lambda: "Muster", StillClock(), look)


@pytest.mark.parametrize("address", ["/console/", "/console/batches?q=a//b", "/console/batches/7#done"])
def test_a_form_leads_to_a_page_of_the_console(address: str) -> None:
    assert a_renderer("/console").inside(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *("", "//elsewhere.org/console/", "https://elsewhere.org/console/", "/consoles/"),
        *("/console/\\elsewhere.org", "/console/\r\nSet-Cookie: a=b"),
    ],
)
def test_a_forged_link_leads_to_the_first_page(address: str) -> None:
    assert a_renderer("/console").inside(address) == "/console/"
    assert a_renderer("/volunteers", LOOK).inside(address) == "/volunteers/computers"


def test_the_page_above_is_the_volunteers_too() -> None:
    volunteers = a_renderer("/muster/volunteers", LOOK)

    assert volunteers.home == volunteers.inside("/muster/") == "/muster/"
    assert a_renderer("/muster/console").inside("/muster/") == "/muster/console/"
