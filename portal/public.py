"""Public files and web RPCs of the project: the statistics export."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import hdrs, web

from transfer.downloads import OwnBytes

KINDS = {
    "tables.xml": "text/xml",
    **{f"{one}.gz": "application/gzip" for one in ("user", "team", "host", "user_deleted", "host_deleted")},
}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Statistics</title></head>
<body><ul>{}</ul></body></html>
"""


class StatisticsFiles:
    """Serves the files of the daily export at stats/, and a list of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/stats/", self.index), web.get("/stats/{name}", self.file)]

    async def index(self, request: web.Request) -> web.Response:
        there = await asyncio.to_thread(lambda: [name for name in KINDS if (self._folder / name).is_file()])
        links = "".join([f'<li><a href="{name}">{name}</a></li>' for name in there])
        return web.Response(text=PAGE.format(links or "<li>no export yet</li>"), content_type="text/html")

    async def file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in KINDS or not await asyncio.to_thread((self._folder / name).is_file):
            return web.Response(status=404, text="no such file\n")
        headers: dict[str, str] = {hdrs.CONTENT_TYPE: KINDS[name], hdrs.CACHE_CONTROL: "public, max-age=3600"}
        return OwnBytes(self._folder / name, headers=headers)
