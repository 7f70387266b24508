"""Where complete files are: the port `FileStore`, its values, and the folder `files/`, which is one implementation.

transfer/bucket.py is the other one. A store without an answer raises OSError or UnavailableError, so that a file is
called missing only if its store says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from domain.errors import AlreadyExistsError
from domain.units import Instant
from transfer.files import (
    CHUNK_BYTES,
    Content,
    content_of,
    make_folder,
    open_new,
    stored_path,
    sync,
    sync_folder,
    temporary_beside,
)

PART = ".part"
RECORDED_MODE = 0o444  # a hint that saves the leftover cleaner a query; no reply to a client depends on it
PAGE = 1_000  # files of a listing


class Area(StrEnum):
    DOWNLOAD = "download"  # a name has one content for ever
    UPLOAD = "upload"  # a host that lost its work may upload other content under the same name


@dataclass(frozen=True, slots=True)
class FileKey:
    """A complete file. `md5` is needed for outputs: a bucket keeps the contents of a name apart."""

    area: Area
    name: str
    md5: str = ""


class FileStat(NamedTuple):
    nbytes: int
    modified_at: Instant


class StoredFile(NamedTuple):
    """A file of a listing. `key` is None if no file of the project has such a place."""

    place: str
    key: FileKey | None
    stat: FileStat


class FileStore(Protocol):
    """Complete files by key. Every call may raise OSError or UnavailableError."""

    @property
    def place(self) -> str:
        """The folder or address, for operators."""
        ...

    async def put(self, source: BinaryIO, key: FileKey, content: Content) -> None:
        """Store a file with this content; durable and readable on return. Idempotent.

        Raises AlreadyExistsError if a file for downloads has other content.
        """
        ...

    async def stats(self, keys: Sequence[FileKey]) -> Sequence[FileStat | None]:
        """Return size and age of each file; None for a missing one."""
        ...

    async def content(self, key: FileKey) -> Content | None:
        """Return size and MD5 of a file; None if it is missing."""
        ...

    def read(self, key: FileKey, start: int, stop: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a file from `start` to `stop`, or to its end. Raises FileNotFoundError."""
        ...

    def path(self, key: FileKey) -> Path | None:
        """Return the path of the file, which need not exist; None if files of this store have no path."""
        ...

    async def link(self, key: FileKey, valid_s: float) -> str | None:
        """Return an address from which any client may fetch the file; None if there is none."""
        ...

    async def delete(self, keys: Sequence[FileKey]) -> None:
        """Delete files; missing ones are skipped."""
        ...

    def listed(self, area: Area, sub_folder: str = "") -> AsyncIterator[Sequence[StoredFile]]:
        """Yield the complete files of an area, or of one of its 256 sub-folders, in pages."""
        ...


class FolderStore:
    """Implements FileStore with files at FOLDER/AREA/ab/NAME, for which every path is safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    async def put(self, source: BinaryIO, key: FileKey, content: Content) -> None:
        await asyncio.to_thread(self._put, source, key, content)

    def _put(self, source: BinaryIO, key: FileKey, content: Content) -> None:
        path = self.path(key)
        make_folder(path.parent)
        temporary = temporary_beside(path)
        is_output = key.area is Area.UPLOAD
        try:
            with open_new(temporary, mode=RECORDED_MODE if is_output else 0o644) as file:
                while chunk := source.read(CHUNK_BYTES):
                    file.write(chunk)
                sync(file)
            if is_output:
                temporary.replace(path)
            else:
                with suppress(FileExistsError):
                    os.link(temporary, path)  # unlike a rename, never replaces an existing file
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        if content_of(path) != content:
            raise AlreadyExistsError("file", key.name)

    async def stats(self, keys: Sequence[FileKey]) -> Sequence[FileStat | None]:
        return await asyncio.to_thread(lambda: [_stat(self.path(key)) for key in keys])

    async def content(self, key: FileKey) -> Content | None:
        try:
            return await asyncio.to_thread(content_of, self.path(key))
        except FileNotFoundError:
            return None

    async def read(self, key: FileKey, start: int, stop: int) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(self.path(key).open, "rb")
        with file:
            file.seek(start)
            while start < stop and (piece := await asyncio.to_thread(file.read, min(CHUNK_BYTES, stop - start))):
                start += len(piece)
                yield piece

    def path(self, key: FileKey) -> Path:
        return stored_path(self._folder / key.area, key.name)

    async def link(self, key: FileKey, valid_s: float) -> str | None:
        del key, valid_s
        return None

    async def delete(self, keys: Sequence[FileKey]) -> None:
        def delete() -> None:
            for path in map(self.path, keys):
                path.unlink(missing_ok=True)

        await asyncio.to_thread(delete)

    async def listed(self, area: Area, sub_folder: str = "") -> AsyncIterator[Sequence[StoredFile]]:
        files = self._files(area, sub_folder)
        while page := await asyncio.to_thread(lambda: list(islice(files, PAGE))):
            yield page

    def _files(self, area: Area, sub_folder: str) -> Iterator[StoredFile]:
        for path in (self._folder / area).glob(f"{sub_folder or '*'}/*"):
            stat = None if path.name.startswith(".") or path.name.endswith(PART) else _stat(path)
            if stat is not None:
                yield StoredFile(f"{area}/{path.parent.name}/{path.name}", FileKey(area, path.name), stat)


def _stat(path: Path) -> FileStat | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return FileStat(found.st_size, Instant(found.st_mtime))
