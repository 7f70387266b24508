"""Redirect targets of forms, and shared templates."""

from __future__ import annotations

import re

import pytest

from console.charts import bar_of
from domain.batches import Batch, BatchCounts, BatchState
from domain.units import Instant, later
from portal.services import LOOK
from tests.builders import NOW, a_batch
from tests.facts import missing
from tests.unit.administration.clocks import StillClock
from web.moments import length
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


def tags(
    batch: Batch,
    tag: str = "",
    *,
    severe: bool = False,
    failing: tuple[str, bool] = ("", False),
    fails: str = "",
    unschedulable: str = "",
) -> str:
    call = """{{ batch_tags(batch, ("", ""), tag, "", severe, unschedulable, "", failing, fails, "") }}"""
    page = environment().from_string("""{% from "parts.html" import batch_tags %}""" + call)
    return page.render(batch=batch, tag=tag, severe=severe, failing=failing, fails=fails, unschedulable=unschedulable)


@pytest.mark.parametrize(
    ("late_s", "kind", "words"), [(1860.0, "tag warn", f", {length(1860.0)} late"), (-60.0, "tag good", "")]
)
def test_batch_that_ended_late_says_so(late_s: float, kind: str, words: str) -> None:
    ended = a_batch(state=BatchState.COMPLETE, deadline_at=NOW, ended_at=later(NOW, late_s))

    assert f'class="{kind}">complete{words}</span>' in tags(ended)


@pytest.mark.parametrize(("severe", "kind"), [(True, "bad"), (False, "warn")])
def test_tag_of_a_batch_in_need_has_its_severity(severe: bool, kind: str) -> None:
    words = "at risk, 46 %"

    assert not missing(tags(a_batch(), words, severe=severe), f"tag {kind}", words)
    failing = tags(a_batch(), failing=("5 of 9 ended jobs failed", severe))
    assert not missing(failing, f"tag {kind}", "5 of 9 ended jobs failed") and "accent" not in failing
    assert "tag accent" in tags(a_batch(counts=BatchCounts(jobs_total=9)))


def test_batch_whose_app_fails_is_not_called_failing() -> None:
    shown = tags(a_batch(), fails="pi 1.00 fails: 25 errors")

    assert not missing(shown, ">active<", ">app failing<", "25 errors") and ">failing<" not in shown


@pytest.mark.parametrize(("deadline_at", "kind"), [(None, "warn"), (NOW, "bad")])
def test_unschedulable_tag_is_as_severe_as_its_item(deadline_at: Instant | None, kind: str) -> None:
    assert f'class="tag {kind}"' in tags(a_batch(deadline_at=deadline_at), unschedulable="too little disk")


def test_progress_draws_failed_jobs_however_few() -> None:
    macro = """{% from "parts.html" import progress %}{{ progress(bar) }}"""
    shown = [environment().from_string(macro).render(bar=bar_of(2500, 2499, failed, 0)) for failed in (0, 1)]

    assert ["f-failed" in one for one in shown] == [False, True]
