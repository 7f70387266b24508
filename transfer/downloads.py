"""Serves the files that clients download: stored once, never changed, sent in full or in part. docs/protocol.md.

A file of the directory is sent from its path. A file of a bucket is read and passed on, or the client is redirected to
the bucket, with an address that is valid for an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import structlog
from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from domain.errors import InvalidInputError, UnavailableError
from transfer.files import shard
from transfer.project_files import Found, ProjectFiles
from transfer.urls import DOWNLOAD_PATH

ROUTE = f"/{DOWNLOAD_PATH}/{{shard}}/{{name}}"
LINK_S = 3600.0  # validity of an address of the bucket; a client resumes at the node, which gives it a new one

_FOR_EVER = "public, max-age=31536000, immutable"  # a name never gets other content

log = structlog.get_logger("transfer.downloads")


class Downloads:
    """Handles GET and HEAD of files for downloads."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the requested file, or the part given by Range."""
        name = request.match_info["name"]
        if shard(name) != request.match_info["shard"]:
            return _not_found()
        try:
            found = await self._files.download(name)
        except InvalidInputError:
            return _not_found()
        except UnavailableError as error:
            return web.Response(status=503, text=f"{error}\n", headers={hdrs.RETRY_AFTER: "60"})
        if found is None:
            return _not_found()
        if self._files.redirects and (link := await found.store.link(found.key, LINK_S)) is not None:
            return web.Response(status=302, headers={hdrs.LOCATION: link, hdrs.CACHE_CONTROL: "no-store"})
        headers: dict[str, str] = {hdrs.CACHE_CONTROL: _FOR_EVER, hdrs.CONTENT_TYPE: "application/octet-stream"}
        return await answer_file(request, found, headers)


async def answer_file(request: web.Request, found: Found, headers: Mapping[str, str]) -> web.StreamResponse:
    """Return a file's exact bytes, or the part given by Range, of a path or from a bucket."""
    path = found.path
    if path is not None:
        if not await asyncio.to_thread(path.is_file):
            return _not_found()
        return OwnBytes(path, headers=dict(headers))
    nbytes = found.stat.nbytes
    response = web.StreamResponse(headers={**headers, hdrs.ACCEPT_RANGES: "bytes"})
    start, stop = 0, nbytes
    try:
        asked = request.http_range
        if request.headers.get(hdrs.RANGE) and hdrs.IF_RANGE not in request.headers:
            start, stop, _ = asked.indices(nbytes)
    except ValueError:
        start = nbytes
    if start >= stop and nbytes:
        return web.Response(status=416, headers={hdrs.CONTENT_RANGE: f"bytes */{nbytes}"})
    if stop - start < nbytes:
        response.set_status(206)
        response.headers[hdrs.CONTENT_RANGE] = f"bytes {start}-{stop - 1}/{nbytes}"
    response.content_length = stop - start
    await response.prepare(request)
    if request.method != hdrs.METH_HEAD:
        await _send(request, response, found, start, stop)
    return response


async def _send(request: web.Request, response: web.StreamResponse, found: Found, start: int, stop: int) -> None:
    """Pass the bytes on at the client's speed. An error closes the connection, so that the client resumes."""
    try:
        async for piece in found.pieces(start, stop):
            await response.write(piece)
        await response.write_eof()
    except (ConnectionError, UnavailableError, FileNotFoundError) as error:
        log.warning("download not completed", file=found.key.name, why=str(error))
        if request.transport is not None:
            request.transport.abort()


class OwnBytes(web.FileResponse):
    """A response with the exact bytes of a file, or the requested part.

    With Accept-Encoding, the framework would serve NAME.gz for NAME, which is a different file here. A Range with an
    If-Range tag of another version returns the whole file.
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
    """Return the entity tag that the web framework computes: modification time and size."""
    found = path.stat()
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}"'


def _not_found() -> web.Response:
    return web.Response(status=404, text="no such file\n")
