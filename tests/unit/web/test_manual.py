"""Links from the console to the manual, and the manual's pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from web.manual import DOCS, HELP, PLACE, Manual, help_address, rendered
from web.rendering import environment

PAGES = [name for name in environment().list_templates() if name.endswith(".html")]


def anchors_of(page: str) -> set[str]:
    """Return the anchors of a page's headings, as the site has them."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("template", PAGES)
def test_help_link_of_every_page_exists(template: str) -> None:
    page, _, anchor = help_address(template).removeprefix(f"{PLACE}/").partition("#")

    assert not anchor or anchor in anchors_of(page.removesuffix(".html"))
    assert (DOCS / page).with_suffix(".md").is_file()


def test_help_names_templates_that_exist() -> None:
    assert set(HELP) <= set(PAGES)


@pytest.mark.parametrize(
    ("path", "status"),
    [("console.html", 200), ("how-to/index.html", 200), ("nothing.html", 404), ("..%2f..%2fpyproject.toml", 404)],
)
async def test_manual_serves_pages_below_docs_only(path: str, status: int) -> None:
    application = web.Application()
    application.add_routes(Manual(lambda: "console.css").routes())

    async with TestClient(TestServer(application)) as client:
        response = await client.get(f"/{PLACE}/{path}")
        assert response.status == status


@pytest.mark.parametrize(
    ("came", "back"),
    [("/batches/upload?x=%22%3E&y", "/batches/upload?x=%22%3E&amp;y"), ("/static/manual/api.html", ""), ('//"', "")],
)
async def test_manual_leads_back_to_the_page_of_its_link(came: str, back: str, tmp_path: Path) -> None:
    application = web.Application()
    application.add_routes(Manual(lambda: "console.css", site=tmp_path).routes())

    async with TestClient(TestServer(application)) as client:
        response = await client.get(f"/{PLACE}/console.html", headers={"Referer": f"http://muster{came}"})
        [found] = re.findall(r'<main class="manual"><p><a href="([^"]*)">', await response.text())
    assert found == (back or "../../")


@pytest.mark.parametrize("name", sorted({address.partition("#")[0] for address in HELP.values()}))
def test_page_is_rendered_with_tables_and_links(name: str) -> None:
    page = rendered((DOCS / f"{name}.md").read_text("utf-8"), root="../", stylesheet="console.css")

    assert "<h1 id=" in page and "|---" not in page
    assert not re.search(r'href="(?!\w+://)[^"]*\.md[#"]', page)
