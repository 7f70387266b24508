"""Links the console's pages to the manual, and serves the manual from docs/."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from markdown_it import MarkdownIt

DOCS = Path(__file__).resolve().parents[1] / "docs"
SITE = DOCS / "_build"  # created by `make docs`
PLACE = "static/manual"
IMAGES = {".png", ".svg"}
BACK = '<a href="{}">Back to the console</a>'
MOST_PAGES = 256  # kept in memory; the manual has fewer
ANY_PAGE = "console#pages"
HELP = {  # template -> page of the manual with heading; ANY_PAGE for all other templates
    "batch_new.html": "reference/batch-file",
    "batch_upload.html": "reference/batch-file",
    "batch_clone.html": "console#run-a-batch-again",
    "batch_retry.html": "console#run-a-batch-again",
    "batch_errors.html": "console#run-a-batch-again",
    "batch.html": "explanations/completion",
    "batch_why.html": "operating#refusals-and-remedies",
    "host_why.html": "operating#refusals-and-remedies",
    "job.html": "explanations/deadlines",
    "job_why.html": "operating#refusals-and-remedies",
    "instance.html": "explanations/deadlines",
    "ordering.html": "explanations/ordering",
    "ordering_preview.html": "console#change-the-order",
    "percentiles.html": "explanations/percentiles",
    "thresholds_preview.html": "console#change-a-threshold",
    "restrictions.html": "operating#pause-work-ban-hosts",
    "setting.html": "reference/settings",
    "settings.html": "reference/settings",
    "simulate.html": "console#simulations",
    "simulation.html": "console#simulations",
    "notifications.html": "how-to/get-notified",
    "password.html": "console#roles",
    "people.html": "console#roles",
    "person.html": "console#roles",
}


def help_address(template: str) -> str:
    """Return the URL of a template's page in the manual, relative to the console's root.

    >>> help_address("simulate.html")
    'static/manual/console.html#simulations'
    """
    page, mark, heading = HELP.get(template, ANY_PAGE).partition("#")
    return f"{PLACE}/{page}.html{mark}{heading}"


class Manual:
    """Serves the manual: the site if `make docs` has built it, otherwise pages rendered from their sources.

    `stylesheet` returns an address relative to the console's root.
    """

    def __init__(self, stylesheet: Callable[[], str], *, site: Path = SITE) -> None:
        self._stylesheet = stylesheet
        self._site = site

    def routes(self) -> list[web.RouteDef]:
        return [web.get(f"/{PLACE}/{{page:.+}}", self.serve, name="manual")]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["page"]
        if (built := _inside(self._site, name)) is not None:
            return web.FileResponse(built)
        if name.endswith(".html") and (source := _inside(DOCS, f"{name.removesuffix('.html')}.md")) is not None:
            root = "../" * (PLACE.count("/") + 1 + name.count("/"))
            page = await asyncio.to_thread(_page, source, root, self._stylesheet())
            back = came_from(request.headers.get("Referer", ""), request.path.removesuffix(f"{PLACE}/{name}"))
            page = page.replace(BACK.format(root), BACK.format(escape(back)), 1) if back else page
            return web.Response(text=page, content_type="text/html", headers={"Cache-Control": "no-store"})
        if (file := _inside(DOCS, name)) is not None and file.suffix in IMAGES:
            return web.FileResponse(file)
        raise web.HTTPNotFound(text="no such page")


def came_from(referer: str, root: str) -> str:
    """Return the page of the console that the user came from, "" if it is unknown.

    >>> came_from("http://muster/console/batches/upload?x=1", "/console/")
    '/console/batches/upload?x=1'
    >>> came_from("http://muster/console/static/manual/api.html", "/console/")
    ''
    """
    try:
        came = urlsplit(referer)
    except ValueError:
        return ""
    if not came.path.startswith(root) or came.path.startswith((f"{root}static/", "//")):
        return ""
    return came.path + (f"?{came.query}" if came.query else "")


@lru_cache(maxsize=MOST_PAGES)
def _page(source: Path, root: str, stylesheet: str) -> str:
    """Return a page from its source. Large pages take a tenth of a second, so each is rendered once, in a thread."""
    return rendered(source.read_text("utf-8"), root=root, stylesheet=stylesheet)


def rendered(source: str, *, root: str, stylesheet: str) -> str:
    """Return a page of the manual as HTML, with anchors at its headings and links to other pages.

    >>> page = rendered("# Who may\\n[API](api.md#pages)", root="../", stylesheet="console.css")
    >>> '<h1 id="who-may">Who may</h1>' in page, '<a href="api.html#pages">API</a>' in page
    (True, True)
    """
    markdown = MarkdownIt("commonmark").enable("table")
    tokens, title = markdown.parse(source), "Manual"
    for heading, text in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w -]", "", text.content.lower()).replace(" ", "-"))
            title = text.content if heading.tag == "h1" else title
        for part in text.children or ():
            if part.type == "link_open" and "://" not in str(part.attrGet("href")):
                part.attrSet("href", re.sub(r"\.md(?=#|$)", ".html", str(part.attrGet("href"))))
    body = markdown.renderer.render(tokens, markdown.options, {})
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{root}{stylesheet}"></head>'
        f'<body><main class="manual"><p>{BACK.format(root)}</p>{body}</main></body></html>'
    )


def _inside(folder: Path, name: str) -> Path | None:
    """Return the file below the directory, None if it does not exist."""
    path = (folder / name).resolve()
    return path if path.is_relative_to(folder) and path.is_file() else None
