"""Links the console's pages to the manual, and serves the manual from docs/."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

DOCS = Path(__file__).resolve().parents[1] / "docs"
SITE = DOCS / "_build"  # created by `make docs`
PLACE = "static/manual"
ANY_PAGE = "console#pages"
HELP = {  # template -> page of the manual with heading; ANY_PAGE for all other templates
    "batch_new.html": "reference/batch-file",
    "batch_upload.html": "reference/batch-file",
    "batch_clone.html": "console#run-a-batch-again",
    "batch_retry.html": "console#run-a-batch-again",
    "batch_errors.html": "console#run-a-batch-again",
    "batch.html": "explanations/completion",
    "job.html": "explanations/deadlines",
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
    """Serves the manual: the site if `make docs` has built it, otherwise the page sources as text."""

    def routes(self) -> list[web.RouteDef]:
        return [web.get(f"/{PLACE}/{{page:.+}}", self.serve, name="manual")]

    async def serve(self, request: web.Request) -> web.FileResponse:
        name = request.match_info["page"]
        if (built := _inside(SITE, name)) is not None:
            return web.FileResponse(built)
        if (source := _inside(DOCS, name.removesuffix(".html") + ".md")) is not None:
            return web.FileResponse(source, headers={"Content-Type": "text/plain; charset=utf-8"})
        raise web.HTTPNotFound(text="no such page")


def _inside(folder: Path, name: str) -> Path | None:
    """Return the file below the directory, None if it does not exist."""
    path = (folder / name).resolve()
    return path if path.is_relative_to(folder) and path.is_file() else None
