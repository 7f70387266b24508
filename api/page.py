"""The page to try the API at: made in the browser from the OpenAPI document, with nothing from other hosts."""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

KINDS = {"try.html": "text/html", "try.js": "text/javascript", "try.css": "text/css"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class TryPage:
    """Three files, read once."""

    def __init__(self) -> None:
        folder = files("api").joinpath("static")
        self._files = {name: folder.joinpath(name).read_bytes() for name in KINDS}

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/", self.page), web.get("/try.js", self.script), web.get("/try.css", self.style)]

    async def page(self, request: web.Request) -> web.Response:
        return self._file("try.html")

    async def script(self, request: web.Request) -> web.Response:
        return self._file("try.js")

    async def style(self, request: web.Request) -> web.Response:
        return self._file("try.css")

    def _file(self, name: str) -> web.Response:
        return web.Response(body=self._files[name], content_type=KINDS[name], charset="utf-8", headers=HEADERS)
