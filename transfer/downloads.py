"""Answers clients that fetch files: whole, in part, or not found. PROTOCOL 7.1."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from domain.errors import InvalidInputError
from transfer.download_folder import DownloadFolder
from transfer.urls import DOWNLOAD_PATH

ROUTE = f"/{DOWNLOAD_PATH}/{{shard}}/{{name}}"

_FOR_EVER = "public, max-age=31536000, immutable"  # a name never stands for other content


class Downloads:
    """GET and HEAD of the download folder."""

    def __init__(self, folder: DownloadFolder) -> None:
        self._folder = folder

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The file named in the address, or the part of it asked for by Range."""
        name, shard = request.match_info["name"], request.match_info["shard"]
        try:
            path = await asyncio.to_thread(self._folder.path, name)
        except InvalidInputError:
            return _not_found()
        if path.parent.name != shard or not await asyncio.to_thread(path.is_file):
            return _not_found()
        return OwnBytes(path, headers={hdrs.CACHE_CONTROL: _FOR_EVER, hdrs.CONTENT_TYPE: "application/octet-stream"})


class OwnBytes(web.FileResponse):
    """A file's own bytes, or the part asked for.

    Accept-Encoding would serve NAME.gz in place of NAME, which is a different file here. A Range given
    under the condition of a tag that is not this file's asks for the whole file.
    """

    def __init__(self, path: Path, *, headers: dict[str, str]) -> None:
        super().__init__(path, headers=headers)
        self._own_path = path

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        headers = request.headers.copy()
        headers.popall(hdrs.ACCEPT_ENCODING, None)
        condition = headers.get(hdrs.IF_RANGE, "")
        if condition.endswith('"') and condition != await asyncio.to_thread(_entity_tag, self._own_path):
            headers.popall(hdrs.RANGE, None)
        return await super().prepare(request.clone(headers=headers))


def _entity_tag(path: Path) -> str:
    """The tag the web framework gives a file: modification time and size."""
    found = path.stat()
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}"'


def _not_found() -> web.Response:
    return web.Response(status=404, text="no such file\n")
