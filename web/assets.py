"""The files of pages: style sheet and scripts, and the chart library as its installed package has it.

Each is read and compressed once, and served under an address with a digest of what it holds, to be kept for a year.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

KEEP = "public, max-age=31536000, immutable"
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LEVEL = 6  # of gzip; more takes seconds for the chart library and saves 1 %


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is sent."""

    name: str
    kind: str
    digest: str
    plain: bytes
    packed: bytes


def read_asset(name: str, source: Traversable) -> Asset:
    """The file, compressed. Takes a while."""
    plain = source.read_bytes()
    kind = KINDS[name.rpartition(".")[2]]
    return Asset(name, kind, hashlib.sha256(plain).hexdigest()[:12], plain, gzip.compress(plain, LEVEL, mtime=0))


def sources() -> dict[str, Traversable]:
    """Where each file is."""
    own = {entry.name: entry for entry in files("web").joinpath("static").iterdir()}
    return own | {"plotly.min.js": files("plotly").joinpath("package_data", "plotly.min.js")}


class Assets:
    """Serves them. A large one is read when it is first asked for, in a thread."""

    def __init__(self, sources: Mapping[str, Traversable]) -> None:
        self._sources = sources
        self._kept: dict[str, Asset] = {}
        self._reading = asyncio.Lock()

    def address(self, name: str) -> str:
        """Where a page finds a file, relative to the console's own address."""
        return f"static/{self._version(name)}/{name}"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/static/{version}/{name}", self.serve, name="static")]

    async def serve(self, request: web.Request) -> web.Response:
        asset = await self._asset(request.match_info["name"])
        headers = {"Cache-Control": KEEP, "Vary": "Accept-Encoding", "ETag": f'"{asset.digest}"'}
        if asset.digest in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            packed = {**headers, "Content-Encoding": "gzip"}
            return web.Response(body=asset.packed, content_type=asset.kind, charset="utf-8", headers=packed)
        return web.Response(body=asset.plain, content_type=asset.kind, charset="utf-8", headers=headers)

    async def _asset(self, name: str) -> Asset:
        if name not in self._sources:
            raise web.HTTPNotFound(text="no such file")
        async with self._reading:
            if name not in self._kept:
                self._kept[name] = await asyncio.to_thread(read_asset, name, self._sources[name])
        return self._kept[name]

    def _version(self, name: str) -> str:
        """Changes with the file: its digest for our own, the release for the library's, which is large."""
        if name == "plotly.min.js":
            from plotly import __version__  # noqa: PLC0415  takes a while, and not every page has charts

            return str(__version__)
        return hashlib.sha256(self._sources[name].read_bytes()).hexdigest()[:12]
