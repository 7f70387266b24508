"""Redirect targets of forms, and shared templates."""

from __future__ import annotations

import re

import pytest

from portal.services import LOOK
from tests.unit.administration.clocks import StillClock
from web.rendering import Assets, PageStyle, Renderer, environment, sources


def a_renderer(root: str, look: PageStyle | None = None) -> Renderer:
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


@pytest.mark.parametrize("name", ["batch", "overview", "unschedulable"])
def test_sortable_tables_in_live_parts_have_ids(name: str) -> None:
    loader = environment().loader
    assert loader is not None
    text = loader.get_source(environment(), f"{name}.html")[0]
    used = re.findall(r"\{{ (\w+_table)\((.*)\) }}", text)
    tables = re.findall(r"<table[^>]*data-sortable[^>]*>", text)

    assert tables or used
    assert [one for one in tables if 'id="' not in one] == []
    assert [macro for macro, arguments in used if 'id="' not in arguments] == []


def test_the_table_of_instances_has_the_id_it_is_given() -> None:
    table = """instance_table([], 0, "", none, "Some", id="t-mine")"""
    shown = environment().from_string(f"""{{% from "instance_table.html" import instance_table %}}{{{{ {table} }}}}""")

    assert '<table class="cards dense" id="t-mine" data-sortable>' in shown.render()


@pytest.mark.parametrize(("words", "is_folded"), [(5, False), (50, True)])
def test_a_long_list_of_a_setting_is_folded(words: int, is_folded: bool) -> None:
    text = " ".join(f"user:n{number}=20" for number in range(words))

    page = environment().from_string("""{% from "parts.html" import folded %}{{ folded(text) }}""").render(text=text)

    assert text in page
    assert (f"{words} words</summary>" in page) is is_folded
