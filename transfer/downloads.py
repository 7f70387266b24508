"""Serves the files that clients download: stored once, never changed, sent in full or in part. docs/protocol.md.

All clients identify a file permanently by its name: the same content may be registered again under it, other content
may not. Calls block; async code must run them in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from domain.errors import AlreadyExistsError, InvalidInputError
from domain.formatting import size_in_words
from transfer.files import CHUNK_BYTES, make_folder, md5_of, open_new, stored_path, sync, sync_folder, temporary_beside
from transfer.urls import DOWNLOAD_PATH


class Content(NamedTuple):
    """A file's size and MD5, which clients check."""

    nbytes: int
    md5: str


class DownloadFolder:
    """The directory of downloadable files. `max_bytes` is the maximum size of a file."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def path(self, name: str) -> Path:
        """Return the path for a file name; the file may not exist. Raises InvalidInputError for an unsafe name."""
        return stored_path(self._folder, name)

    def register_file(self, source: Path | bytes, name: str) -> Content:
        """Copy a file into the directory as `name`; it is complete and on disk on return. Idempotent for equal content.

        Raises AlreadyExistsError if the name has other content, and InvalidInputError for an unsafe name or a source
        that is not a file or too large.
        """
        path = self.path(name)
        make_folder(path.parent)
        temporary = temporary_beside(path)
        try:
            content = self._copy(source, temporary, name)
            with suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename, this never replaces an existing file
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        if content_of(path) != content:
            raise AlreadyExistsError("file", name)
        return content

    def _copy(self, source: Path | bytes, target: Path, name: str) -> Content:
        digest = hashlib.md5(usedforsecurity=False)
        nbytes = 0
        with open_new(target, mode=0o644) as file:
            for chunk in _chunks(source):
                nbytes += len(chunk)
                if nbytes > self._max_bytes:
                    raise InvalidInputError(name, f"a file of at most {size_in_words(self._max_bytes)}", "a larger one")
                digest.update(chunk)
                file.write(chunk)
            sync(file)
        return Content(nbytes, digest.hexdigest())


def content_of(path: Path) -> Content:
    """Return the size and MD5 of a file on disk."""
    with path.open("rb") as file:
        return Content(os.fstat(file.fileno()).st_size, md5_of(file))


def _chunks(source: Path | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    if not source.is_file():
        raise InvalidInputError(str(source), "a readable file", "none")
    with source.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


ROUTE = f"/{DOWNLOAD_PATH}/{{shard}}/{{name}}"

_FOR_EVER = "public, max-age=31536000, immutable"  # a name never gets other content


class Downloads:
    """Handles GET and HEAD requests for the download directory."""

    def __init__(self, folder: DownloadFolder) -> None:
        self._folder = folder

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the requested file, or the part of it given by Range."""
        name, shard = request.match_info["name"], request.match_info["shard"]
        try:
            path = await asyncio.to_thread(self._folder.path, name)
        except InvalidInputError:
            return _not_found()
        if path.parent.name != shard or not await asyncio.to_thread(path.is_file):
            return _not_found()
        return OwnBytes(path, headers={hdrs.CACHE_CONTROL: _FOR_EVER, hdrs.CONTENT_TYPE: "application/octet-stream"})


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
